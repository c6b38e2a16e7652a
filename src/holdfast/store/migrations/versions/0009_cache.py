"""What pipelines looked up and may use again for a while.

Revision ID: 0009
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}

TABLE = """
create table cache (
    scope      text not null,
    key        text not null,
    value      text not null,
    expires_at {INSTANT} not null,
    primary key (scope, key)
)
"""


def upgrade() -> None:
    op.execute(TABLE.format(INSTANT=INSTANT[op.get_context().dialect.name]))
    op.execute("create index cache_by_expiry on cache (expires_at)")


def downgrade() -> None:
    op.execute("drop table cache")
