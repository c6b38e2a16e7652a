"""The latest reading of each station.

Revision ID: weather_0001
"""

from alembic import op

revision = "weather_0001"
down_revision = None
branch_labels = ("weather",)
depends_on = None

NOW = {
    "postgresql": "timestamptz not null default now()",
    "sqlite": "text not null default (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))",
}


def upgrade() -> None:
    op.execute(
        "create table weather_readings (station bigint primary key, degrees bigint not null,"
        f" read_at {NOW[op.get_context().dialect.name]})"
    )


def downgrade() -> None:
    op.execute("drop table weather_readings")
