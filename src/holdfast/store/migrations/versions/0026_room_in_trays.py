"""On PostgreSQL, pages of trays keep room for the lease of each range that is added.

A lease that does not fit on the page of its range is written to another one, with an entry in each
index: one in nine at 200 records/s. A leased range is larger than a free one; on pages that are
filled to two fifths it fits, even if a transaction that is held open keeps the version before it.

Revision ID: 0026
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_TRAYS = (1, 2, 3)


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for number in _TRAYS:
            op.execute(f"alter table ranges_{number} set (fillfactor = 40)")


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for number in _TRAYS:
            op.execute(f"alter table ranges_{number} reset (fillfactor)")
