"""What a stream waits for, how slow its source is, and on which machine a worker runs.

Revision ID: 0015
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COLUMNS = (
    ("streams", "waiting_for", "text"),
    ("streams", "overruns", "integer not null default 0"),
    ("workers", "machine", "text not null default ''"),
)


def upgrade() -> None:
    for table, column, kind in COLUMNS:
        op.execute(f"alter table {table} add column {column} {kind}")


def downgrade() -> None:
    for table, column, _ in reversed(COLUMNS):
        op.execute(f"alter table {table} drop column {column}")
