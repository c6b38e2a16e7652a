"""What people decided about items, beside their outcomes.

Revision ID: 0011
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}

#: Never updated: each decision, and each revocation, is a row with the next version.
TABLE = """
create table rulings (
    job_id  bigint not null,
    seq     bigint not null,
    version integer not null,
    kind    text not null,
    value   text not null,
    changes text not null,
    reason  text not null,
    author  text not null,
    at      {INSTANT} not null,
    primary key (job_id, seq, version)
)
"""


def upgrade() -> None:
    op.execute(TABLE.format(INSTANT=INSTANT[op.get_context().dialect.name]))


def downgrade() -> None:
    op.execute("drop table rulings")
