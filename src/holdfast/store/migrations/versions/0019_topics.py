"""Topics: a pipeline can have several standing jobs, one for each topic.

Revision ID: 0019
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_INDEX = (
    "create unique index jobs_standing on jobs (pipeline, owner_id{TOPIC})"
    " where standing = 1 and state <> 'CANCELLED'"
)


def upgrade() -> None:
    op.execute("alter table jobs add column topic text not null default ''")
    op.execute("drop index jobs_standing")
    op.execute(_INDEX.format(TOPIC=", topic"))


def downgrade() -> None:
    # Those with a topic become jobs that end: earlier versions know one standing job per pipeline.
    if op.get_context().dialect.name == "postgresql":
        op.execute(
            "update jobs set next_seq = greatest(next_seq,"
            " (select coalesce(max(seq), 0) + 1 from items i where i.job_id = jobs.id))"
            " where standing = 1 and topic <> ''"
        )
    op.execute("update jobs set standing = 0 where topic <> ''")
    op.execute("drop index jobs_standing")
    op.execute(_INDEX.format(TOPIC=""))
    op.execute("alter table jobs drop column topic")
