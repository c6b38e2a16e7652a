-- What policies remove. Jobs are deleted as if a person had asked for it; see deletion.sql.

-- fragment: ended_job
j.state in ('DONE', 'FAILED', 'CANCELLED')
       and (j.reference is not null or not exists (select 1 from streams s where s.job_id = j.id))

-- name: old_jobs
-- Jobs that ended this long ago. The last one on a source holds its position, and stays.
select   j.id
from     jobs j
where    @ended_job
         and j.finished_at <= @after(:ago)
order by j.id
limit    :limit;

-- name: drop_old_decisions
delete from decisions
where  id in (select id from decisions where at <= @after(:ago) order by id limit :limit)
returning id;

-- name: count_old_decisions
select count(*)
from   decisions
where  at <= @after(:ago);

-- name: count_old_samples
select count(*)
from   samples
where  bucket < :bucket;

-- name: count_old_audit
select count(*)
from   audit
where  at <= @after(:ago);

-- fragment: unused_file
not exists (select 1 from jobs j where j.file_id = f.id)
         and (cast(f.detected as text) not like '%"media_type"%'
              or not exists (select 1
                             from   files l join jobs j on j.file_id = l.id
                             where  l.owner_id = f.owner_id and l.kind = 'images' and l.id > f.id))

-- name: old_files
-- Files from which no job is created any more. A job over images is created from a list of them: an
-- image stays while its owner has such a job that is not older.
select   f.id, f.key, f.name, f.owner_id
from     files f
where    f.created_at <= @after(:ago)
         and @unused_file
order by f.id
limit    :limit;

-- name: unused_file
select f.id
from   files f
where  f.id = :id and @unused_file;

-- name: drop_file
delete from files
where  id = :id
returning id;

-- name: old_exports
select   id, format, key, owner_id, job_id
from     exports
where    finished_at <= @after(:ago)
order by id
limit    :limit;

-- name: drop_export
delete from exports
where  id = :id
returning id;

-- name: superseded_jobs
-- Passes whose every source was read again by a later one, in whatever mode, that was verified.
select   j.id
from     jobs j
where    j.concludes = 1 and j.pruned_at is null
         and j.state in ('DONE', 'FAILED', 'CANCELLED')
         and not exists (select 1 from streams s where s.job_id = j.id)
         and exists (select 1 from stream_slices l where l.job_id = j.id)
         and not exists (select 1
                         from   stream_slices l
                                left join streams s on s.id = l.stream_id
                         where  l.job_id = j.id
                                and not exists (select 1
                                                from   streams v
                                                where  v.pipeline = s.pipeline
                                                       and v.source = s.source
                                                       and v.verified_at > j.finished_at))
order by j.id
limit    :limit;

-- name: mark_pruned
update jobs
set    pruned_at = @now
where  id = :job_id and pruned_at is null and state in ('DONE', 'FAILED', 'CANCELLED')
returning name;

-- name: pruned_jobs_with_items
select   j.id
from     jobs j
where    j.pruned_at is not null and exists (select 1 from items i where i.job_id = j.id)
limit    :limit;

-- fragment: open_standing_job
j.standing = 1 and j.state in ('QUEUED', 'RUNNING', 'PAUSED')

-- name: jobs_with_old_items
-- Standing jobs, and each status of which they have old items: the oldest is found by the index.
select   j.id, s.status
from     jobs j
         cross join (select 'DONE' as status union all select 'NOT_FOUND'
                     union all select 'SKIPPED' union all select 'ERROR') s
where    @open_standing_job
         and (select   o.updated_at
              from     outcomes o
              where    o.job_id = j.id and o.status = s.status
              order by o.updated_at, o.seq
              limit    1) <= @after(:ago)
order by j.id, s.status;

-- name: count_old_items
select count(*)
from   jobs j
       join outcomes o on o.job_id = j.id
where  @open_standing_job and o.status in ('DONE', 'NOT_FOUND', 'SKIPPED', 'ERROR')
       and o.updated_at <= @after(:ago)
       and not exists (select 1 from rulings r where r.job_id = o.job_id and r.seq = o.seq);

-- name: hold_standing_job
-- Locked: a reprocess or a decision comes before or after.
select j.removed
from   jobs j
where  j.id = :job_id and @open_standing_job
@for_update;

-- name: old_items
-- Items that finished before a time, after a position, in the order they finished. An item about
-- which a person decided stays.
select   o.seq, o.updated_at, i.key
from     outcomes o
         join items i on i.job_id = o.job_id and i.seq = o.seq
where    o.job_id = :job_id and o.status = :status
         and (o.updated_at, o.seq) > (:since, :seq) and o.updated_at <= @after(:ago)
         and not exists (select 1 from rulings r where r.job_id = o.job_id and r.seq = o.seq)
order by o.updated_at, o.seq
limit    :limit;

-- name: keys_of_items
-- Keys that still name one of these items; a key may have passed to a later item of the same job.
select seq
from   keys
where  scope @one_of(:scopes, text) and key @one_of(:keys, text)
       and job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: hold_keys_of_items
-- Keys without those that a transaction of an application is about to give to another item: that
-- may take long.
select   seq
from     keys
where    scope @one_of(:scopes, text) and key @one_of(:keys, text)
         and job_id = :job_id and seq @one_of(:seqs, bigint)
order by scope, key
@skip_locked;

-- name: remove_keys
delete from keys
where  scope @one_of(:scopes, text) and key @one_of(:keys, text)
       and job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: remove_items
delete from items
where  job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: remove_outcomes
delete from outcomes
where  job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: remove_attempts
delete from attempts
where  job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: remove_item_letters
delete from dead_letters
where  job_id = :job_id and seq @one_of(:seqs, bigint);

-- name: note_removed
update jobs
set    removed = :removed
where  id = :job_id;

-- name: removal_in_audit
-- Whether the audit log has an entry about it within a day.
select 1
from   audit
where  job_id = :job_id and subject = 'retention' and action = 'items.removed'
       and at > @after(-86400.0)
limit  1;
