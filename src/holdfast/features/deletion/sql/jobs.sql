-- Deleting a job: its state first, its ranges next, then everything else in chunks.

-- name: deleting_jobs
select   id
from     jobs
where    state = 'DELETING'
order by id;

-- name: items_to_delete
-- The next chunk; items go first, so that no one can decide about one that is being deleted.
select   seq, key
from     items
where    job_id = :job_id and seq between :lo and :hi
order by seq
limit    :limit;

-- name: key_scopes
-- The scopes of all keys: there are few, found by hopping through the index.
with recursive hop(scope) as (
    select min(scope) from keys
    union all
    select (select min(k.scope) from keys k where k.scope > hop.scope)
    from   hop
    where  hop.scope is not null
)
select scope
from   hop
where  scope is not null;

-- name: delete_keys
-- Deletes only keys that still name an item of this job.
delete from keys
where  scope in (@each(:scopes, text)) and key in (@each(:keys, text)) and job_id = :job_id;

-- name: delete_items
delete from items
where  job_id = :job_id and seq between :lo and :hi;

-- name: delete_outcomes
delete from outcomes
where  job_id = :job_id and seq between :lo and :hi;

-- name: delete_attempts
delete from attempts
where  job_id = :job_id and seq between :lo and :hi;

-- name: delete_rulings
delete from rulings
where  job_id = :job_id and seq between :lo and :hi;

-- name: delete_item_letters
delete from dead_letters
where  job_id = :job_id and seq between :lo and :hi;

-- name: delete_decisions
delete from decisions
where  id in (select id from decisions where job_id = :job_id order by id limit :limit)
returning id;

-- name: delete_gate_uses
delete from gate_uses
where  job_id = :job_id
       and gate in (select gate from gate_uses where job_id = :job_id order by gate limit :limit)
returning gate;

-- name: delete_samples
delete from samples
where  job_id = :job_id
       and bucket in (select bucket from samples where job_id = :job_id order by bucket
                      limit :limit)
returning bucket;

-- name: delete_stream_pages
-- Deletes the history of streams that the job read last.
delete from stream_pages
where  (stream_id, generation, cursor_hash) in
       (select p.stream_id, p.generation, p.cursor_hash
        from   streams s
               join stream_pages p on p.stream_id = s.id
        where  s.job_id = :job_id
        limit  :limit)
returning number;

-- name: delete_stream_slices
delete from stream_slices
where  id in (select l.id
              from   streams s
                     join stream_slices l on l.stream_id = s.id
              where  s.job_id = :job_id
              limit  :limit)
returning id;

-- name: delete_letters
delete from dead_letters
where  id in (select id from dead_letters where job_id = :job_id limit :limit)
returning id;

-- name: export_keys_of_job
select key
from   exports
where  job_id = :job_id and key is not null;

-- name: delete_exports_of_job
delete from exports
where  job_id = :job_id
returning key;

-- name: delete_counters
delete from counters
where  job_id = :job_id;

-- name: delete_nudge
delete from nudges
where  job_id = :job_id;

-- name: delete_streams
delete from streams
where  job_id = :job_id;

-- name: delete_job
delete from jobs
where  id = :job_id;

-- name: pipeline_of_deleting
select pipeline
from   jobs
where  id = :job_id and state = 'DELETING';

-- name: job_to_delete
-- What its last entry in the audit log says about it; the row is locked.
select pipeline, name, owner_id, state, pruned_at
from   jobs
where  id = :job_id
@for_update;

-- name: jobs_left_behind
-- Jobs that have ranges or counters and are gone; found by hopping through the indexes.
with recursive hop(job_id) as (
    select min(job_id) from ranges
    union all
    select (select min(r.job_id) from ranges r where r.job_id > hop.job_id)
    from   hop
    where  hop.job_id is not null
),
counted(job_id) as (
    select min(job_id) from counters
    union all
    select (select min(c.job_id) from counters c where c.job_id > counted.job_id)
    from   counted
    where  counted.job_id is not null
)
select known.job_id
from   (select job_id from hop union select job_id from counted) known
where  known.job_id is not null
       and not exists (select 1 from jobs j where j.id = known.job_id);

-- name: ranges_left_behind
select   id, lo, hi
from     ranges
where    job_id = :job_id
order by id
limit    :limit;

-- name: lock_file
-- Waits for jobs that are being created from it; they are found in the next statement.
select id
from   files
where  id = :id
@for_update;

-- name: mark_file
-- No job can be created from it any more, and it is not listed. What a killed process leaves of it
-- is removed like the file of a request that was not answered.
update files
set    draft = 1
where  id = :id and draft = 0
returning id;
