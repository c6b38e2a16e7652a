"""What a worker holds is its own as long as it is alive: nothing has a time of its own to expire.

Revision ID: 0029
"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}
NOW = {"postgresql": "clock_timestamp()", "sqlite": "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"}
REAL = {"postgresql": "double precision", "sqlite": "real"}
#: Each with the column that names its holder.
HELD = {
    "ranges": "worker",
    "streams": "worker",
    "operations": "worker",
    "exports": "worker",
    "adapters": "token",
    "gate_holds": "worker",
    "duties": "holder",
}
#: What older programs declare with each row.
NEEDED = ("gate_holds", "duties")


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    for table in HELD:
        op.execute(f"alter table {table} drop column expires_at")
    op.execute(
        f"alter table workers add column lost_after_seconds {REAL[dialect]} not null default 20"
    )


def downgrade() -> None:
    dialect = op.get_bind().dialect.name
    op.execute("alter table workers drop column lost_after_seconds")
    for table, holder in HELD.items():
        if table in NEEDED:
            op.execute(f"delete from {table}")
        needed = "not null default '2000-01-01T00:00:00.000Z'" if table in NEEDED else ""
        op.execute(f"alter table {table} add column expires_at {INSTANT[dialect]} {needed}")
        op.execute(f"update {table} set expires_at = {NOW[dialect]} where {holder} is not null")
