"""Adds a function on PostgreSQL that adds records of applications.

One statement over all tables was most of what a record cost the database: it was planned again for
each call, and a function's statements are kept. What such a record does not count is null, and
takes no space.

Revision ID: 0023
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

#: Commits that give notice come one after the other, each with its own write to disk. So not while
#: records come fast, nor while another is about to give notice and records have just come: workers
#: look by themselves then.
_GIVE_NOTICE = """
create function give_notice(of_job bigint) returns void language plpgsql as $$
declare
    moment  timestamptz := clock_timestamp();
    recent  bigint;
    newest  bigint;
begin
    -- The order leads the planner, which has no statistics of this table, to the right index.
    select count(*), count(*) filter (where available_at > moment - interval '0.02 seconds')
    into   recent, newest
    from   (select   available_at
            from     ranges
            where    job_id = of_job and available_at <= moment
                     and available_at >= moment - interval '0.25 seconds'
            order by available_at desc, id desc
            limit    8) latest;
    if newest < 8 and (
        pg_try_advisory_xact_lock(hashtextextended('notice ' || of_job, 1)) or recent = 0
    ) then
        perform pg_notify('holdfast_work', cast(of_job as text));
    end if;
end $$
"""

#: Items, their ranges and their count, without a lock on any row: an application may hold its
#: transaction open for long. The numbers of calls at the same time mix; each stretch without a gap
#: is a range. A record that comes alone takes the short way. Writes nothing unless exactly one
#: standing job fits. Inputs are taken as rows: `inputs -> 0` fails for text with a NUL.
_ENQUEUE = """
create function enqueue_records(
    of_pipeline text, of_owner text, of_topic text, inputs json, total bigint, bytes bigint,
    due timestamptz,
    out fitting_jobs bigint, out standing_job bigint
) language plpgsql as $$
declare
    owner_name text;
    moment     timestamptz;
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
        perform give_notice(standing_job);
    end if;
    if total = 1 then
        starts[1] := nextval('standing_seqs');
        ends := starts;
        insert into items (job_id, seq, input)
        select standing_job, starts[1], value from json_array_elements(inputs);
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
        insert into ranges (job_id, lo, hi, again, available_at, settled, expiries, lone_expiries,
                            item_bytes, since, owner_id, pipeline)
        values (standing_job, starts[part], ends[part], 0, coalesce(due, moment), 0, 0, 0, bytes,
                moment, owner_name, of_pipeline);
    end loop;
    insert into counters (job_id, accepted, updated_at) values (standing_job, total, moment);
end $$
"""

_ZERO = ("done", "not_found", "skipped", "error", "retried", "throttled", "known")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        for name in _ZERO:
            op.execute(f"alter table counters alter column {name} drop not null")
        op.execute(_GIVE_NOTICE)
        op.execute(_ENQUEUE)


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("drop function enqueue_records")
        op.execute("drop function give_notice")
        for name in _ZERO:
            op.execute(f"update counters set {name} = 0 where {name} is null")
            op.execute(f"alter table counters alter column {name} set not null")
