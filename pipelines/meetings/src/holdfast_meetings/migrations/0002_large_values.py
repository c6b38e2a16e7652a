"""Long texts on PostgreSQL are compressed by lz4, and up to four kilobytes stay in their row.
Migration 0006 of core explains why.

Revision ID: meetings_0002
"""

from alembic import op

revision = "meetings_0002"
down_revision = "meetings_0001"
branch_labels = None
depends_on = None

TABLES = ("meetings_pages", "meetings_page_history")

#: A server that was built without lz4 continues as before.
COMPRESS = """
do $$ begin
    alter table {table} alter column text set compression {way};
exception when feature_not_supported then null;
end $$
"""


def upgrade() -> None:
    _alter("lz4", "set (toast_tuple_target = 4080)")


def downgrade() -> None:
    _alter("default", "reset (toast_tuple_target)")


def _alter(way: str, rows: str) -> None:
    if op.get_context().dialect.name == "postgresql":
        for table in TABLES:
            op.execute(f"alter table {table} {rows}")
            op.execute(COMPRESS.format(table=table, way=way))
