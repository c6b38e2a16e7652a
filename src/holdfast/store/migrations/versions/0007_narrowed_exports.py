"""What an export is narrowed to besides statuses: an error code, times, what columns hold.

Revision ID: 0007
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table exports add column narrowed text not null default '{}'")


def downgrade() -> None:
    # An export of what matched is not to become one of everything when it is written later.
    op.execute(
        "update exports set state = 'FAILED', error = 'the program was set back'"
        " where narrowed <> '{}' and state in ('QUEUED', 'RUNNING')"
    )
    op.execute("alter table exports drop column narrowed")
