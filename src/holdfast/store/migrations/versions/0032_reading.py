"""What a job keeps about reading its records has its own column; options are those of people.

Revision ID: 0032
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    json = "json" if op.get_context().dialect.name == "postgresql" else "text"
    op.execute(f"alter table jobs add column reading {json} not null default '{{}}'")


def downgrade() -> None:
    op.execute("alter table jobs drop column reading")
