"""Large values on PostgreSQL: compressed by lz4, which costs a fraction of what the server's own
way costs; and records of up to four kilobytes stay in their row, where the default of two puts
many a page of text elsewhere, at half as much again for each write and read.

Revision ID: 0006
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

COLUMNS = {
    "items": ("input",),
    "outcomes": ("normalized", "result"),
}

#: A server that was built without lz4 continues as before.
COMPRESS = """
do $$ begin
    alter table {table} alter column {column} set compression {way};
exception when feature_not_supported then null;
end $$
"""
ROW_BYTES = "toast_tuple_target"


def upgrade() -> None:
    _alter("lz4", f"set ({ROW_BYTES} = 4080)")


def downgrade() -> None:
    _alter("default", f"reset ({ROW_BYTES})")


def _alter(way: str, rows: str) -> None:
    if op.get_context().dialect.name == "postgresql":
        for table, columns in COLUMNS.items():
            op.execute(f"alter table {table} {rows}")
            for column in columns:
                op.execute(COMPRESS.format(table=table, column=column, way=way))
