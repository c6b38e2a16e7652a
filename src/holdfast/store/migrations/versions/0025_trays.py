"""On PostgreSQL, what arrives and is soon gone is written to tables that are emptied in turn.

A transaction that is held open keeps every row version that others delete or replace until it ends.
A record that comes alone left three: its range as it was added, its range as it was leased, and its
count. `truncate` leaves none. So `ranges` and `counters` have trays, of which one is filled while
the others are emptied; tray 0 has what stays longer, and is never truncated.

Revision ID: 0025
"""

import runpy
from pathlib import Path

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_TRAYS = (1, 2, 3)
#: Emptied before autovacuum would have a reason to look at them; if they cannot be, it does.
_STORAGE = "with (autovacuum_vacuum_threshold = 100000, autovacuum_analyze_threshold = 100000)"
_RANGES = {
    "ranges_by_id": "(id)",
    "ranges_of_job_by_since": "(job_id, since, id)",
    "ranges_to_claim": "(job_id, available_at, id)",
}
_COUNTERS = {"counters_by_job": "(job_id)"}
_COUNTS = ("accepted", "done", "not_found", "skipped", "error", "retried", "throttled", "known")


def _each(statement: str) -> str:
    """The statement for the current tray. One that chose among the tables would lock all of them
    for as long as an application holds its transaction open: none could be emptied."""
    cases = "".join(f"when {n} then {statement.format(n=n)}; " for n in _TRAYS)
    return f"case turn {cases} end case;"


#: Commits that give notice come one after the other, each with its own write to disk. So not while
#: records come fast, nor while two others are about to give notice and records have just come:
#: workers look by themselves then.
_FAST = """
    fast := (select count(*) = 8
             from   (select 1
                     from   ranges_{n}
                     where  job_id = of_job and available_at <= moment
                            and available_at > moment - interval '0.02 seconds'
                     limit  8) newest)"""
_RECENT = """
    recent := exists (select 1
                      from   ranges_{n}
                      where  job_id = of_job and available_at <= moment
                             and available_at >= moment - interval '0.25 seconds')"""
_GIVE_NOTICE = f"""
create function give_notice(of_job bigint, turn bigint) returns boolean language plpgsql as $$
declare
    moment timestamptz := clock_timestamp();
    fast   boolean;
    recent boolean := false;
begin
    {_each(_FAST)}
    if fast then
        return false;
    end if;
    if not pg_try_advisory_xact_lock(hashtextextended('notice ' || of_job, 1))
       and not pg_try_advisory_xact_lock(hashtextextended('notice ' || of_job, 2)) then
        {_each(_RECENT)}
    end if;
    if not recent then
        perform pg_notify('holdfast_work', cast(of_job as text));
    end if;
    return not recent;
end $$
"""

#: Items, their ranges and their count, without a lock on any row: an application may hold its
#: transaction open for long. The numbers of calls at the same time mix; each stretch without a gap
#: is a range. A record that comes alone takes the short way. Writes nothing unless exactly one
#: standing job fits. What is due later does not go to a tray.
_ADD_RANGE = """
    insert into ranges_{n} (tray, job_id, lo, hi, again, available_at, settled, expiries,
                            lone_expiries, item_bytes, since, owner_id, pipeline)
    values ({n}, standing_job, starts[part], ends[part], 0, moment, 0, 0, 0, bytes, moment,
            owner_name, of_pipeline)"""
_COUNT = """
    insert into counters_{n} (tray, job_id, accepted, updated_at)
    values ({n}, standing_job, total, moment)"""
_ENQUEUE = f"""
create function enqueue_records(
    of_pipeline text, of_owner text, of_topic text, inputs json, total bigint, bytes bigint,
    due timestamptz,
    out fitting_jobs bigint, out standing_job bigint
) language plpgsql as $$
declare
    turn       bigint := pg_sequence_last_value('tray_turns');
    owner_name text;
    moment     timestamptz;
    noticed    boolean;
    seqs       bigint[];
    starts     bigint[];
    ends       bigint[];
begin
    select count(*), min(id), min(owner_id)
    into   fitting_jobs, standing_job, owner_name
    from   jobs
    where  standing = 1 and state not in ('CANCELLED', 'DELETING') and pipeline = of_pipeline
           and (of_owner = '' or owner_id = of_owner) and topic = of_topic;
    if fitting_jobs <> 1 then
        return;
    end if;
    if due is null then
        noticed := give_notice(standing_job, turn);
    end if;
    if total = 1 then
        starts[1] := nextval('standing_seqs');
        ends := starts;
        insert into items (job_id, seq, input) values (standing_job, starts[1], inputs -> 0);
    else
        with added as (
            insert into items (job_id, seq, input)
            select standing_job, nextval('standing_seqs'), value
            from   json_array_elements(inputs)
            returning seq
        )
        select array_agg(seq) into seqs from added;
        if seqs[total] - seqs[1] = total - 1 then
            starts := seqs[1:1];
            ends := seqs[total:total];
        else
            select array_agg(lo), array_agg(hi)
            into   starts, ends
            from   (select   min(seq) as lo, max(seq) as hi
                    from     (select seq, seq - row_number() over (order by seq) as stretch
                              from   unnest(seqs) seq) numbered
                    group by stretch) stretches;
        end if;
    end if;
    moment := clock_timestamp();
    for part in 1 .. cardinality(starts) loop
        if due is null then
            {_each(_ADD_RANGE)}
        else
            insert into ranges_0 (job_id, lo, hi, again, available_at, settled, expiries,
                                  lone_expiries, item_bytes, since, owner_id, pipeline)
            values (standing_job, starts[part], ends[part], 0, due, 0, 0, 0, bytes, moment,
                    owner_name, of_pipeline);
        end if;
    end loop;
    {_each(_COUNT)}
end $$
"""

#: A sequence is read as it is now, whatever the reader's snapshot.
_CURRENT = """
create function current_tray() returns smallint language plpgsql as $$
begin
    return (select last_value from tray_turns);
end $$
"""

#: Not by `truncate`: a snapshot that is older, such as that of a backup, would see neither the rows
#: nor their sum. Jobs are held, so that a deletion waits, or nothing is left to fold: else the
#: folded row would outlive the job. What was committed for another job since then is left for the
#: next time.
_FOLD = f"""
create function fold_tray(number bigint) returns void language plpgsql as $$
declare
    held bigint[];
begin
    execute format('select array_agg(id)
                    from   (select   id
                            from     jobs
                            where    id in (select job_id from counters_%s)
                            order by id
                            for key share) held', number)
    into held;
    execute format('with taken as (delete from counters_%s
                                   where  job_id = any($1)
                                          or not exists (select from jobs where id = job_id)
                                   returning *)
                    insert into counters (tray, job_id, {", ".join(_COUNTS)}, updated_at)
                    select   0, job_id,
                             {", ".join(f"coalesce(sum({name}), 0)" for name in _COUNTS)},
                             max(updated_at)
                    from     taken
                    where    job_id = any($1)
                    group by job_id', number)
    using held;
end $$
"""
#: Gives up after a moment: every statement that comes after it would wait too.
_EMPTY = """
create function empty_tray(number bigint) returns boolean language plpgsql as $$
declare
    is_empty boolean;
begin
    perform set_config('lock_timeout', '10ms', true);
    execute format('lock table ranges_%1$s, counters_%1$s in access exclusive mode', number);
    execute format('select not exists (select from ranges_%1$s)
                           and not exists (select from counters_%1$s)', number)
    into is_empty;
    if is_empty then
        execute format('truncate ranges_%1$s, counters_%1$s', number);
    end if;
    return is_empty;
end $$
"""


def upgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    op.execute("drop function enqueue_records")
    op.execute("drop function give_notice")
    op.execute("create sequence tray_turns maxvalue 3")
    # Not nextval, which writes ahead: after a crash of the server it would be 33.
    op.execute("select setval('tray_turns', 1)")
    op.execute(_CURRENT)
    op.execute("alter table ranges alter column id drop identity")
    op.execute("alter table ranges drop constraint ranges_pkey")
    op.execute("create index ranges_by_id on ranges (id)")
    op.execute("create sequence range_ids")
    op.execute("select setval('range_ids', (select coalesce(max(id), 0) + 1 from ranges))")
    op.execute("alter table ranges alter column id set default nextval('range_ids')")
    _part("ranges", "0", _RANGES)
    _part("counters", "current_tray()", _COUNTERS)
    for function in (_GIVE_NOTICE, _ENQUEUE, _FOLD, _EMPTY):
        op.execute(function)


#: Roles that could use the table as it was, such as an application's, can use the new ones.
_COPY_RIGHTS = """
do $$
declare
    other record;
begin
    for other in
        select (aclexplode(relacl)).* from pg_class where oid = cast('{table}_0' as regclass)
    loop
        if other.grantee <> 0 and other.grantee <> other.grantor then
            execute format('grant %s on {tables} to %I', other.privilege_type,
                           pg_get_userbyid(other.grantee));
            if other.privilege_type = 'INSERT' then
                execute format('grant select on sequence tray_turns to %I',
                               pg_get_userbyid(other.grantee));
                execute format('grant usage on sequence range_ids to %I',
                               pg_get_userbyid(other.grantee));
            end if;
        end if;
    end loop;
end $$
"""


def _part(table: str, tray: str, indexes: dict[str, str]) -> None:
    """The table as it is becomes tray 0 of a new one."""
    op.execute(f"alter table {table} rename to {table}_0")
    op.execute(f"alter table {table}_0 add column tray smallint not null default 0")
    for name in indexes:
        op.execute(f"alter index {name} rename to {name}_0")
    op.execute(f"create table {table} (like {table}_0 including defaults) partition by list (tray)")
    op.execute(f"alter table {table} alter column tray set default {tray}")
    op.execute(f"alter table {table} attach partition {table}_0 for values in (0)")
    for number in _TRAYS:
        values = f"for values in ({number}) {_STORAGE}"
        op.execute(f"create table {table}_{number} partition of {table} {values}")
    for name, columns in indexes.items():
        for number in _TRAYS:
            op.execute(f"create index {name}_{number} on {table}_{number} {columns}")
        op.execute(f"create index {name} on {table} {columns}")  # made of those of the trays
    tables = ", ".join([table, *(f"{table}_{number}" for number in _TRAYS)])
    op.execute(_COPY_RIGHTS.format(table=table, tables=tables))


def downgrade() -> None:
    if op.get_context().dialect.name != "postgresql":
        return
    for function in ("enqueue_records", "give_notice", "fold_tray", "empty_tray"):
        op.execute(f"drop function {function}")
    _join("ranges", _RANGES)
    _join("counters", _COUNTERS)
    op.execute("drop function current_tray")
    op.execute("drop sequence tray_turns")
    op.execute("drop index ranges_by_id")
    op.execute("alter table ranges alter column id drop default")
    op.execute("drop sequence range_ids")
    op.execute("alter table ranges add primary key (id)")
    op.execute("alter table ranges alter column id add generated by default as identity")
    op.execute(
        "select setval(pg_get_serial_sequence('ranges', 'id'),"
        " (select coalesce(max(id), 0) + 1 from ranges))"
    )
    earlier = runpy.run_path(str(Path(__file__).with_name("0023_enqueue_function.py")))
    op.execute(earlier["_GIVE_NOTICE"])
    op.execute(earlier["_ENQUEUE"])


def _join(table: str, indexes: dict[str, str]) -> None:
    op.execute(f"update {table} set tray = 0 where tray > 0")
    op.execute(f"alter table {table} detach partition {table}_0")
    op.execute(f"drop table {table}")
    op.execute(f"alter table {table}_0 drop column tray")
    op.execute(f"alter table {table}_0 rename to {table}")
    for name in indexes:
        op.execute(f"alter index {name}_0 rename to {name}")
