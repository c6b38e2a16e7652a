"""How jobs stood over time, for the charts of the pages.

Revision ID: 0005
"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

CLUSTERED = {"postgresql": "", "sqlite": "without rowid"}

TABLE = """
create table samples (
    job_id    bigint not null,
    bucket    bigint not null,
    accepted  bigint not null,
    finished  bigint not null,
    error     bigint not null,
    throttled bigint not null,
    primary key (job_id, bucket)
) {CLUSTERED}
"""


def upgrade() -> None:
    op.execute(TABLE.format(CLUSTERED=CLUSTERED[op.get_context().dialect.name]))
    op.execute("create index samples_by_bucket on samples (bucket)")


def downgrade() -> None:
    op.execute("drop table samples")
