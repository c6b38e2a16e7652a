"""What each job sent through each gate.

Revision ID: 0022
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

TYPES = {
    "postgresql": {"REAL": "double precision", "INSTANT": "timestamptz", "CLUSTERED": ""},
    "sqlite": {"REAL": "real", "INSTANT": "text", "CLUSTERED": "without rowid"},
}

USES = """
create table gate_uses (
    job_id       bigint not null,
    gate         text not null,
    passed       bigint not null,
    waits        bigint not null,
    wait_seconds {REAL} not null,
    throttles    bigint not null,
    failures     bigint not null,
    first_at     {INSTANT} not null,
    last_at      {INSTANT} not null,
    primary key (job_id, gate)
) {CLUSTERED}
"""


def upgrade() -> None:
    op.execute(USES.format(**TYPES[op.get_context().dialect.name]))


def downgrade() -> None:
    op.execute("drop table gate_uses")
