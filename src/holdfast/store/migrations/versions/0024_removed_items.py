"""How many finished items of a standing job were removed, by status. Its counters include them.

Revision ID: 0024
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table jobs add column removed text not null default '{}'")


def downgrade() -> None:
    op.execute("alter table jobs drop column removed")
