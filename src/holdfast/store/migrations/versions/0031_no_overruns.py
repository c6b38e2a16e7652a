"""Slow streams have room instead of rules: nobody counts how often their walks overran.

Revision ID: 0031
"""

from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table streams drop column overruns")


def downgrade() -> None:
    op.execute("alter table streams add column overruns integer not null default 0")
