-- PostgreSQL's stored functions. Each has a version in its name: a change of what one takes,
-- returns or does is a new function with the next number, so that programs of the release before
-- can still call the old one. It is dropped by a step of the release after that.

-- Gives notice that a job has work. Commits that give notice come one after the other, each with
-- its own write to disk. So not while records come fast, nor while another is about to give
-- notice and records have just come: workers look by themselves then.
create or replace function give_notice_1(of_job bigint) returns void language plpgsql
set search_path from current as $$
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
end $$;

-- Adds the records of one call: items, their ranges and their count, without a lock on any row,
-- since an application may hold its transaction open for long. A function's statements are kept,
-- while one statement over all tables would be planned again for each call. The numbers of calls
-- at the same time mix; each stretch without a gap is a range. A record that comes alone takes
-- the short way. Writes nothing unless exactly one standing job fits. Inputs are taken as rows:
-- `inputs -> 0` fails for text with a NUL.
create or replace function enqueue_records_1(
    of_pipeline text, of_owner text, of_topic text, inputs json, total bigint, bytes bigint,
    due timestamptz,
    out fitting_jobs bigint, out standing_job bigint
) language plpgsql
set search_path from current as $$
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
        perform give_notice_1(standing_job);
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
end $$;

-- Called by triggers of the audit, of which rows may only go while a pruning is noted.
create or replace function audit_is_append_only_1() returns trigger language plpgsql
set search_path from current as $$
begin
    if tg_op = 'DELETE' then
        if exists (select 1 from audit_pruning p where old.at < p.before) then
            return old;
        end if;
    end if;
    raise exception 'the audit is append-only';
end $$;

create or replace function audit_notes_pruning_1() returns trigger language plpgsql
set search_path from current as $$
begin
    insert into audit (actor, action, job_id, subject, detail, at)
    values (new.actor, 'audit.pruned', null,
            cast(new.before at time zone 'UTC' as text), '{}', new.at);
    return new;
end $$;
