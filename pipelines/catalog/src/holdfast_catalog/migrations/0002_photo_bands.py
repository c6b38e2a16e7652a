"""Photographs that are almost the same are found by parts of their hashes.

Revision ID: catalog_0002
"""

from alembic import op

revision = "catalog_0002"
down_revision = "catalog_0001"
branch_labels = None
depends_on = None

CLUSTERED = {"postgresql": "", "sqlite": "without rowid"}


def upgrade() -> None:
    clustered = CLUSTERED[op.get_context().dialect.name]
    op.execute(
        "create table catalog_photo_bands (job_id bigint not null, band smallint not null,"
        " part text not null, seq bigint not null,"
        f" primary key (job_id, band, part, seq)) {clustered}"
    )


def downgrade() -> None:
    op.execute("drop table catalog_photo_bands")
