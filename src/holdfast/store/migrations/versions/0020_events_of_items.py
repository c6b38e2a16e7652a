"""What was done to one item is found by its number.

Revision ID: 0020
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("create index audit_by_subject on audit (job_id, subject, id)")


def downgrade() -> None:
    op.execute("drop index audit_by_subject")
