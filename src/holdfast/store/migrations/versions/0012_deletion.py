"""Accounts that are being deleted, and jobs whose items were pruned.

Revision ID: 0012
"""

from alembic import op

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}
revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table users add column deleting smallint not null default 0")
    instant = INSTANT[op.get_context().dialect.name]
    op.execute(f"alter table jobs add column pruned_at {instant}")
    op.execute("create index stream_slices_by_job on stream_slices (job_id)")


def downgrade() -> None:
    op.execute("drop index stream_slices_by_job")
    op.execute("alter table jobs drop column pruned_at")
    op.execute("alter table users drop column deleting")
