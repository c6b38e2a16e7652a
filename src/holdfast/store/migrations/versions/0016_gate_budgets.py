"""Budgets of gates, what workers may have in flight, and what passed in each minute.

Revision ID: 0016
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

TYPES = {
    "postgresql": {"REAL": "double precision", "INSTANT": "timestamptz", "CLUSTERED": ""},
    "sqlite": {"REAL": "real", "INSTANT": "text", "CLUSTERED": "without rowid"},
}

COLUMNS = (
    ("gates", "requests", "bigint not null default 0"),
    ("gates", "units", "{REAL} not null default 0"),
    ("gates", "period", "{REAL} not null default 60"),
    ("gates", "share", "{REAL} not null default 1"),
    ("gates", "requests_left", "{REAL} not null default 0"),
    ("gates", "units_left", "{REAL} not null default 0"),
    ("gates", "filled_at", "{INSTANT}"),
    ("gates", "throttled_at", "{INSTANT}"),
    ("gate_holds", "weight", "integer not null default 1"),
    ("gate_holds", "most", "integer"),
)

MINUTES = """
create table gate_minutes (
    gate         text not null,
    minute       bigint not null,
    passed       bigint not null,
    units        {REAL} not null,
    waits        bigint not null,
    wait_seconds {REAL} not null,
    throttles    bigint not null,
    failures     bigint not null,
    primary key (gate, minute)
) {CLUSTERED}
"""


def upgrade() -> None:
    types = TYPES[op.get_context().dialect.name]
    for table, column, kind in COLUMNS:
        op.execute(f"alter table {table} add column {column} {kind.format(**types)}")
    op.execute(MINUTES.format(**types))


def downgrade() -> None:
    op.execute("drop table gate_minutes")
    for table, column, _ in reversed(COLUMNS):
        op.execute(f"alter table {table} drop column {column}")
