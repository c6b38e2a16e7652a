"""Adds trigrams on PostgreSQL, which find misspelt words, if the extension may be created.

Revision ID: catalog_0003
"""

from alembic import op

revision = "catalog_0003"
down_revision = "catalog_0002"
branch_labels = None
depends_on = None

#: Without the right to create it, or without its files, the catalogue works with exact words.
TRIGRAMS = """
do $$
begin
    create extension if not exists pg_trgm;
    create index catalog_products_by_trigrams on catalog_products using gin (words gin_trgm_ops);
exception
    when insufficient_privilege or undefined_file or feature_not_supported then
        raise notice 'pg_trgm cannot be created: misspelt words are not found';
end
$$
"""


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute(TRIGRAMS)


def downgrade() -> None:
    """Leaves the extension in place: others may use it."""
    if op.get_context().dialect.name == "postgresql":
        op.execute("drop index if exists catalog_products_by_trigrams")
