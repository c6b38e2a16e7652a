"""The high tide of each harbour.

Revision ID: tides_0001
"""

from alembic import op

revision = "tides_0001"
down_revision = None
branch_labels = ("tides",)
depends_on = None


def upgrade() -> None:
    op.execute(
        "create table tides_heights (harbour text primary key, metres double precision not null)"
    )


def downgrade() -> None:
    op.execute("drop table tides_heights")
