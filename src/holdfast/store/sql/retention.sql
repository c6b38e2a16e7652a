-- What policies let go. Jobs are deleted as if somebody had asked for it; see deletion.sql.

-- fragment: ended_job
j.state in ('DONE', 'FAILED', 'CANCELLED')
       and (j.reference is not null or not exists (select 1 from streams s where s.job_id = j.id))

-- name: old_jobs
-- Those that ended so long ago. The last one on a source holds its position, and stays.
select   j.id
from     jobs j
where    @ended_job
         and j.finished_at <= @after(:ago)
order by j.id
limit    :limit;

-- name: surplus_jobs
-- Those beyond the newest of each owner.
select   n.id
from     (select j.id, row_number() over (partition by j.owner_id order by j.id desc) as number
          from   jobs j
          where  @ended_job) n
where    n.number > :count
order by n.id
limit    :limit;

-- name: job_with_old_attempts
select   j.id
from     jobs j
where    j.state in ('DONE', 'FAILED', 'CANCELLED') and j.finished_at <= @after(:ago)
         and exists (select 1 from attempts a where a.job_id = j.id)
limit    1;

-- name: drop_old_attempts
delete from attempts
where  job_id = :job_id
       and seq in (select seq from attempts where job_id = :job_id order by seq limit :limit)
returning seq;

-- name: count_old_attempts
select count(*)
from   jobs j
       join attempts a on a.job_id = j.id
where  j.state in ('DONE', 'FAILED', 'CANCELLED') and j.finished_at <= @after(:ago);

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

-- name: count_old_messages
select count(*)
from   inbox
where  at <= @after(:ago);

-- name: count_old_audit
select count(*)
from   audit
where  at <= @after(:ago);

-- name: old_files
-- Those that no job is made of any more.
select   f.id, f.key, f.name, f.owner_id
from     files f
where    f.created_at <= @after(:ago)
         and not exists (select 1 from jobs j where j.file_id = f.id)
order by f.id
limit    :limit;

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
