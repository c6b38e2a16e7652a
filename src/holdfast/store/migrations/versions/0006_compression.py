"""Large values are compressed by lz4, which costs a fraction of what PostgreSQL's own way costs.

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
    "meeting_pages": ("text",),
    "meeting_page_history": ("text",),
}

#: A server that was built without lz4 goes on as before.
SET = """
do $$ begin
    alter table {table} alter column {column} set compression {way};
exception when feature_not_supported then null;
end $$
"""


def upgrade() -> None:
    _set("lz4")


def downgrade() -> None:
    _set("default")


def _set(way: str) -> None:
    if op.get_context().dialect.name == "postgresql":
        for table, columns in COLUMNS.items():
            for column in columns:
                op.execute(SET.format(table=table, column=column, way=way))
