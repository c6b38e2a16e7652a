"""Which documents a job saw and changed, so that updated and unchanged ones are counted.

Revision ID: meetings_0003
"""

from alembic import op

revision = "meetings_0003"
down_revision = "meetings_0002"
branch_labels = None
depends_on = None

COLUMNS = {
    "meetings_documents": ("seen_job_id bigint", "changed_job_id bigint"),
    "meetings_counts": (
        "documents_seen bigint not null default 0",
        "documents_updated bigint not null default 0",
    ),
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            op.execute(f"alter table {table} add column {column}")


def downgrade() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            op.execute(f"alter table {table} drop column {column.split()[0]}")
