"""The warmest stations are found by an index.

Revision ID: weather_0002
"""

from alembic import op

revision = "weather_0002"
down_revision = "weather_0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("create index weather_readings_by_degrees on weather_readings (degrees)")


def downgrade() -> None:
    op.execute("drop index weather_readings_by_degrees")
