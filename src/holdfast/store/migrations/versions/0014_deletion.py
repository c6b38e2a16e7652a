"""Accounts that are being deleted, and jobs whose items were pruned.

Revision ID: 0014
"""

from alembic import op

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}
revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table users add column deleting smallint not null default 0")
    instant = INSTANT[op.get_context().dialect.name]
    op.execute(f"alter table jobs add column pruned_at {instant}")
    op.execute("create index stream_slices_by_job on stream_slices (job_id)")
    _index_standing("state not in ('CANCELLED', 'DELETING')")


def downgrade() -> None:
    # Deletions that are not finished: what is left of the jobs counts as cancelled.
    op.execute("update jobs set state = 'CANCELLED' where state = 'DELETING'")
    _index_standing("state <> 'CANCELLED'")
    op.execute("drop index stream_slices_by_job")
    op.execute("alter table jobs drop column pruned_at")
    op.execute("alter table users drop column deleting")


def _index_standing(where: str) -> None:
    op.execute("drop index jobs_standing")
    op.execute(
        "create unique index jobs_standing on jobs (pipeline, owner_id)"
        f" where standing = 1 and {where}"
    )
