"""A record that arrives alone writes fewer entries of indexes on PostgreSQL.

Its range is written three times: added, leased, removed. An index on who has it made the second
write an entry in every index of the table; what needs it (a lost worker, the sweep) is rare and
reads the table. Lists over all jobs ask each job with open items for its oldest.

Revision ID: 0021
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_DROPPED = {
    "ranges_by_worker": "(worker) where worker is not null",
    "ranges_by_since": "(since, id)",
    "ranges_of_owner_by_since": "(owner_id, since, id)",
}


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for name in _DROPPED:
            op.execute(f"drop index {name}")


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for name, columns in _DROPPED.items():
            op.execute(f"create index {name} on ranges {columns}")
