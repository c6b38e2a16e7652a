"""A cancelled standing job can be deleted while its owner has another one. On PostgreSQL, a single
record may have a NUL in its text, and rights of PUBLIC reach the trays.

Revision ID: 0027
"""

from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_INDEX = (
    "create unique index jobs_standing on jobs (pipeline, owner_id, topic)"
    " where standing = 1 and state {states}"
)

#: `inputs -> 0` fails for text with a NUL.
_FIRST = "insert into items (job_id, seq, input) values (standing_job, starts[1], inputs -> 0)"
_EACH = (
    "insert into items (job_id, seq, input)"
    " select standing_job, starts[1], value from json_array_elements(inputs)"
)
_REPLACE = """
do $$
declare
    before text := pg_get_functiondef(cast('enqueue_records' as regproc));
    now    text := replace(before, '{old}', '{new}');
begin
    if now = before then
        raise exception 'enqueue_records is not as migration 0025 wrote it';
    end if;
    execute now;
end $$
"""

_COPY_RIGHTS = """
do $$
declare
    privilege text;
begin
    for privilege in
        select privilege_type
        from   (select (aclexplode(relacl)).*
                from   pg_class
                where  oid = cast('{table}_0' as regclass)) rights
        where  grantee = 0
    loop
        execute format('grant %s on {table}, {table}_1, {table}_2, {table}_3 to public', privilege);
        if privilege = 'INSERT' then
            grant select on sequence tray_turns to public;
            grant usage on sequence range_ids to public;
        end if;
    end loop;
end $$
"""


def upgrade() -> None:
    _index("not in ('CANCELLED', 'DELETING')")
    if op.get_context().dialect.name == "postgresql":
        op.execute(_REPLACE.format(old=_FIRST, new=_EACH))
        for table in ("ranges", "counters"):
            op.execute(_COPY_RIGHTS.format(table=table))


def downgrade() -> None:
    # The earlier index does not allow one that is being deleted beside another. Its deletion
    # continues.
    op.execute("update jobs set standing = 0 where standing = 1 and state = 'DELETING'")
    _index("<> 'CANCELLED'")
    if op.get_context().dialect.name == "postgresql":
        op.execute(_REPLACE.format(old=_EACH, new=_FIRST))


def _index(states: str) -> None:
    op.execute("drop index jobs_standing")
    op.execute(_INDEX.format(states=states))
