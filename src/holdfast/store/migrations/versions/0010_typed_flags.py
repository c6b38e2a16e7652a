"""Flags have values: numbers and choices besides on and off.

Revision ID: 0010
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table flags add column value text not null default 'true'")
    op.execute("update flags set value = 'false' where enabled = 0")
    op.execute("alter table flags drop column enabled")


def downgrade() -> None:
    # What cannot be said with on and off has its default again.
    op.execute("delete from flags where value not in ('true', 'false')")
    op.execute("alter table flags add column enabled smallint not null default 1")
    op.execute("update flags set enabled = 0 where value = 'false'")
    op.execute("alter table flags drop column value")
