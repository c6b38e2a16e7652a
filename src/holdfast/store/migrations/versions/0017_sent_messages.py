"""Messages that pipelines send to exchanges of others.

Revision ID: 0017
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

COLUMNS = ("exchange", "routing_key", "headers")


def upgrade() -> None:
    for column in COLUMNS:
        op.execute(f"alter table outbox add column {column} text")


def downgrade() -> None:
    # What is not sent yet would go to a queue of ours.
    op.execute("delete from outbox where exchange is not null")
    for column in reversed(COLUMNS):
        op.execute(f"alter table outbox drop column {column}")
