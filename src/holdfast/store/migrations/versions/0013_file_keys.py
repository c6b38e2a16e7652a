"""Files and exports are named by their keys in the file store.

Revision ID: 0013
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("alter table files rename column path to key")
    op.execute("create index files_by_key on files (key)")
    op.execute("alter table exports add column key text")
    op.execute("alter table exports add column sha256 text")
    op.execute("create index exports_by_key on exports (key)")


def downgrade() -> None:
    op.execute("drop index exports_by_key")
    op.execute("alter table exports drop column sha256")
    op.execute("alter table exports drop column key")
    op.execute("drop index files_by_key")
    op.execute("alter table files rename column key to path")
