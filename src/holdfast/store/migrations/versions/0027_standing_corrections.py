"""A cancelled standing job can be deleted while its owner has another one.

Revision ID: 0027
"""

from alembic import op

revision = "0027"
down_revision = "0024"
branch_labels = None
depends_on = None

_INDEX = (
    "create unique index jobs_standing on jobs (pipeline, owner_id, topic)"
    " where standing = 1 and state {states}"
)


def upgrade() -> None:
    _index("not in ('CANCELLED', 'DELETING')")


def downgrade() -> None:
    # The earlier index does not allow one that is being deleted beside another. Its deletion
    # continues.
    op.execute("update jobs set standing = 0 where standing = 1 and state = 'DELETING'")
    _index("<> 'CANCELLED'")


def _index(states: str) -> None:
    op.execute("drop index jobs_standing")
    op.execute(_INDEX.format(states=states))
