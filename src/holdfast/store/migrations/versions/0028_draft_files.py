"""A file that comes with a request is a draft until the job over it is created.

Revision ID: 0028
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table files add column draft integer not null default 0")
    op.execute("create index files_draft on files (created_at) where draft = 1")


def downgrade() -> None:
    # Their bytes are removed as those of any object without a row.
    op.execute("delete from files where draft = 1")
    op.execute("drop index files_draft")
    op.execute("alter table files drop column draft")
