-- The queries of linker.

-- name: linker_save_tasks
-- What people decided stays as it is.
insert into linker_tasks (job_id, seq, project_id, key, name, folded, state, score, item, entry,
                          reason)
select batch.job_id, batch.seq, batch.project_id, batch.key, batch.name, batch.folded, batch.state,
       batch.score, batch.item, batch.entry, batch.reason
from   @rows(job_id bigint, seq bigint, project_id bigint, key text, name text, folded text,
             state text, score double precision, item text, entry text, reason text) batch
where  true
on conflict (job_id, seq) do update
set    project_id = excluded.project_id, key = excluded.key, name = excluded.name,
       folded = excluded.folded, entry = excluded.entry,
       state = case when linker_tasks.reviewed_at is null then excluded.state
                    else linker_tasks.state end,
       item = case when linker_tasks.reviewed_at is null then excluded.item
                   else linker_tasks.item end,
       score = case when linker_tasks.reviewed_at is null then excluded.score
                    else linker_tasks.score end,
       reason = case when linker_tasks.reviewed_at is null then excluded.reason
                     else linker_tasks.reason end
where  linker_tasks.state <> 'moved'
returning job_id;

-- name: linker_reviewed
-- The tasks that people decided about; no one decides about these tasks until this transaction
-- ends.
select seq, state, reviewed_at
from   linker_tasks
where  job_id = :job_id and seq in (@each(:seqs, bigint))
@for_update;

-- name: linker_rejected
select seq, item
from   linker_candidates
where  job_id = :job_id and seq in (@each(:seqs, bigint)) and status = 'rejected';

-- name: linker_drop_suggestions
-- Removes candidates before new ones are written; what people added or rejected stays.
delete from linker_candidates
where  job_id = :job_id and seq in (@each(:seqs, bigint)) and source = 'automated_search'
       and status <> 'rejected'
returning seq;

-- name: linker_save_candidates
insert into linker_candidates (job_id, seq, item, project_id, position, label, description, score,
                               fields, matched, source, status)
select batch.job_id, batch.seq, batch.item, batch.project_id, batch.position, batch.label,
       batch.description, batch.score, batch.fields, batch.matched, 'automated_search',
       batch.status
from   @rows(job_id bigint, seq bigint, item text, project_id bigint, position bigint, label text,
             description text, score double precision, fields text, matched text, status text) batch
where  true
on conflict (job_id, seq, item) do update
set    position = excluded.position, label = excluded.label, description = excluded.description,
       score = excluded.score, fields = excluded.fields, matched = excluded.matched
returning job_id;

-- name: linker_save_entities
insert into linker_entities (space, id, label, description, data, seen_at)
select batch.space, batch.id, batch.label, batch.description, batch.data, @now
from   @rows(space text, id text, label text, description text, data text) batch
where  true
on conflict (space, id) do update
set    label = excluded.label, description = excluded.description, data = excluded.data,
       seen_at = excluded.seen_at
where  linker_entities.data <> excluded.data or linker_entities.label <> excluded.label
returning id;

-- name: linker_save_entity_names
insert into linker_entity_names (space, folded, id)
select batch.space, batch.folded, batch.id
from   @rows(space text, folded text, id text) batch
where  true
on conflict (space, folded, id) do nothing
returning id;

-- name: linker_add_calls
-- Reads add them up, so that workers do not share a row.
insert into linker_calls (job_id, entries, calls)
values (:job_id, :entries, :calls)
returning id;

-- name: linker_own_project
-- The project of a job, if it belongs to the job's owner.
select id
from   linker_projects
where  id = :id and owner_id = :owner_id and deleted_at is null;

-- name: linker_delete_user_projects
-- Hidden: the rest is deleted in the background.
update linker_projects
set    deleted_at = @now
where  owner_id = :name and deleted_at is null;

-- name: linker_delete_user_readers
delete from linker_readers
where  user_name = :name;

-- name: linker_delete_job_calls
delete from linker_calls
where  id in (select id from linker_calls where job_id = :job_id limit :limit)
returning id;

-- name: linker_delete_job_candidates
delete from linker_candidates
where  job_id = :job_id
       and (seq, item) in (select seq, item from linker_candidates where job_id = :job_id
                           limit :limit)
returning seq;

-- name: linker_delete_job_datasets
-- The datasets of a deleted project stay until their files are deleted.
delete from linker_datasets
where  id in (select d.id
              from   linker_datasets d
                     join linker_projects p on p.id = d.project_id
              where  d.job_id = :job_id and p.deleted_at is null
              limit  :limit)
returning id;

-- name: linker_delete_job_tasks
delete from linker_tasks
where  job_id = :job_id
       and seq in (select seq from linker_tasks where job_id = :job_id limit :limit)
returning seq;

-- A person's decision.

-- name: linker_task
-- Locks the task: no one else writes about it until this transaction ends.
select t.job_id, t.seq, t.project_id, t.key, t.name, t.state, t.score, t.item, t.entry, t.reason,
       t.reviewer, t.reviewed_at
from   linker_tasks t
where  t.job_id = :job_id and t.seq = :seq
@for_update;

-- name: linker_candidates_of
select   item, position, label, description, score, fields, matched, source, status, reviewer
from     linker_candidates
where    job_id = :job_id and seq = :seq
order by position, item;

-- name: linker_review_task
update linker_tasks
set    state = :state, item = :item, score = :score, reviewer = :reviewer, reviewed_at = @now
where  job_id = :job_id and seq = :seq
returning seq;

-- name: linker_reopen_task
update linker_tasks
set    state = :state, item = :item, score = :score, reviewer = null, reviewed_at = null
where  job_id = :job_id and seq = :seq
returning seq;

-- name: linker_mark_candidates
-- `item` gets one status, the others another; null leaves the others unchanged.
update linker_candidates
set    status = case when item = cast(:item as text) then cast(:status as text)
                     else coalesce(cast(:others as text), status) end,
       reviewer = :reviewer
where  job_id = :job_id and seq = :seq
       and (item = cast(:item as text) or cast(:others as text) is not null)
returning item;

-- name: linker_add_candidate
insert into linker_candidates (job_id, seq, item, project_id, position, label, description, score,
                               fields, matched, source, status, reviewer)
select t.job_id, t.seq, cast(:item as text), t.project_id, 1000, cast(:label as text),
       cast(:description as text), null, '[]', '[]', 'manual', 'suggested', cast(:reviewer as text)
from   linker_tasks t
where  t.job_id = :job_id and t.seq = :seq
on conflict (job_id, seq, item) do nothing
returning item;

-- name: linker_entity
select space, id, label, description, data
from   linker_entities
where  space = :space and id = :id;

-- Projects.

-- fragment: linker_project_columns
id, owner_id, name, provider, language, candidates, auto_accept, lead, created_at

-- name: linker_add_project
insert into linker_projects (owner_id, name, provider, language, candidates, auto_accept, lead,
                             created_at)
values (:owner_id, :name, :provider, :language, :candidates, :auto_accept, :lead, @now)
returning id;

-- name: linker_project_by_name
select @linker_project_columns
from   linker_projects
where  owner_id = :owner_id and name = :name and deleted_at is null;

-- name: linker_hold_projects
-- One request at a time adds to the projects of an owner. SQLite has one writer at a time anyway.
select :owner_id;

-- name: linker_project_count
select count(*) as projects
from   linker_projects
where  owner_id = :owner_id and deleted_at is null;

-- name: linker_project
select @linker_project_columns
from   linker_projects
where  id = :id and deleted_at is null;

-- name: linker_projects
-- The projects that a person may see: all, or their own and those to which they are invited.
select   @linker_project_columns
from     linker_projects p
where    deleted_at is null and id < :before
         and (cast(:scope as text) is null or owner_id = cast(:scope as text)
              or exists (select 1
                         from   linker_readers r
                         where  r.project_id = p.id and r.user_name = cast(:scope as text)))
order by id desc
limit    :limit;

-- name: linker_change_project
update linker_projects
set    name = :name, candidates = :candidates, auto_accept = :auto_accept, lead = :lead
where  id = :id and deleted_at is null
returning id;

-- name: linker_hide_project
-- Locked before its jobs are deleted: nothing is added to it any more.
update linker_projects
set    deleted_at = @now
where  id = :id and deleted_at is null
returning id;

-- name: linker_deleted_projects
-- Projects whose deletion has begun. A dataset that was just claimed may get a job, which is waited
-- for.
select   @linker_project_columns
from     linker_projects p
where    deleted_at is not null
         and not exists (select 1
                         from   linker_datasets d
                         where  d.project_id = p.id and d.job_id is null
                                and @seconds_since(d.claimed_at) < 60)
order by id
limit    :limit;

-- name: linker_drop_project_tasks
-- Entries that came as messages; those of datasets go with their jobs.
delete from linker_tasks
where  (job_id, seq) in (select job_id, seq from linker_tasks where project_id = :id limit :limit)
returning seq;

-- name: linker_drop_project_candidates
delete from linker_candidates
where  (job_id, seq, item) in (select job_id, seq, item
                               from   linker_candidates
                               where  project_id = :id
                               limit  :limit)
returning seq;

-- name: linker_other_jobs
-- Jobs without a dataset: that of messages, and those that were started with the project as their
-- option.
select id as job_id
from   jobs
where  pipeline = 'linker' and standing = 1 and owner_id = :owner_id and topic = :topic
union
select t.job_id
from   linker_tasks t
       join jobs j on j.id = t.job_id
where  t.project_id = :id and j.standing = 0;

-- name: linker_file_users
-- Other datasets that read this file.
select id
from   linker_datasets
where  file_id = :file_id and id <> :id
limit  1;

-- name: linker_drop_dataset
delete from linker_datasets
where  id = :id
returning id;

-- name: linker_drop_project_readers
delete from linker_readers
where  project_id = :id
returning project_id;

-- name: linker_drop_project_tokens
delete from linker_tokens
where  project_id = :id
returning id;

-- name: linker_drop_project_datasets
delete from linker_datasets
where  project_id = :id
returning id;

-- name: linker_drop_project
delete from linker_projects
where  id = :id
returning id;

-- name: linker_add_reader
insert into linker_readers (project_id, user_name)
values (:project_id, :user_name)
on conflict (project_id, user_name) do nothing
returning project_id;

-- name: linker_drop_reader
delete from linker_readers
where  project_id = :project_id and user_name = :user_name
returning project_id;

-- name: linker_readers_of
select   user_name
from     linker_readers
where    project_id = :project_id
order by user_name;

-- name: linker_add_dataset
insert into linker_datasets (project_id, name, file_id, mapping, created_at)
select id, cast(:name as text), cast(:file_id as bigint), cast(:mapping as text), @now
from   linker_projects
where  id = :project_id and deleted_at is null
returning id;

-- name: linker_dataset_by_name
-- Datasets, the newest first, with what their jobs read.
select   d.id, d.mapping, d.job_id, j.input_key
from     linker_datasets d
         left join jobs j on j.id = d.job_id
where    d.project_id = :project_id and d.name = :name and d.file_id is null
order by d.id desc;

-- name: linker_datasets_of
select   id, project_id, name, file_id, mapping, job_id, created_at
from     linker_datasets
where    project_id = :project_id
order by id;

-- name: linker_link_dataset
update linker_datasets
set    job_id = :job_id
where  id = :id and project_id = :project_id and job_id is null
returning id;

-- name: linker_claim_dataset
-- If two requests want to match it, one starts the job; a minute later it may be tried again.
update linker_datasets
set    claimed_at = @now
where  id = :id and job_id is null and (claimed_at is null or @seconds_since(claimed_at) > 60)
returning id;

-- name: linker_release_dataset
update linker_datasets
set    claimed_at = null
where  id = :id and job_id is null
returning id;

-- fragment: linker_task_columns
job_id, seq, key, name, state, score, item, entry, reason, reviewer, reviewed_at

-- name: linker_tasks_page
-- Tasks in order of review: the best score first.
select   @linker_task_columns
from     linker_tasks
where    project_id = :project_id and state = :state
         and coalesce(score, -1) between :low and :high
         and (coalesce(score, -1) < :score
              or (coalesce(score, -1) = :score
                  and (job_id > :job_id or (job_id = :job_id and seq > :seq))))
order by coalesce(score, -1) desc, job_id, seq
limit    :limit;

-- name: linker_task_of
select @linker_task_columns
from   linker_tasks
where  project_id = :project_id and job_id = :job_id and seq = :seq;

-- name: linker_rematchable
-- Those of these tasks that no one decided about.
select seq
from   linker_tasks
where  project_id = :project_id and job_id = :job_id and seq in (@each(:seqs, bigint))
       and reviewed_at is null;

-- fragment: linker_is_proposed
t.project_id = :project_id and t.state = :state and t.reviewed_at is null
and coalesce(t.score, -1) between :low and :high
and (:needs_candidate = 0
     or exists (select 1
                from   linker_candidates c
                where  c.job_id = t.job_id and c.seq = t.seq and c.status = 'suggested'))

-- name: linker_count_proposals
-- Entries that a decision in bulk would decide, by job.
select   t.job_id, count(*) as entries
from     linker_tasks t
where    @linker_is_proposed
group by t.job_id
order by t.job_id;

-- name: linker_proposals
-- The same for one job, with the first candidate that no one rejected.
select   t.seq,
         (select   c.item
          from     linker_candidates c
          where    c.job_id = t.job_id and c.seq = t.seq and c.status = 'suggested'
          order by c.position, c.item
          limit    1) as item
from     linker_tasks t
where    @linker_is_proposed
         and t.job_id = :job_id and t.seq > :after
order by t.seq
limit    :limit;

-- name: linker_usage
select coalesce(cast(sum(c.entries) as bigint), 0) as entries,
       coalesce(cast(sum(c.calls) as bigint), 0) as calls
from   linker_calls c
where  c.job_id in (select job_id from linker_datasets where project_id = :project_id);

-- name: linker_repeated_ids
-- Ids that several entries of a project have.
select   key, count(*) as entries
from     linker_tasks
where    project_id = :project_id
group by key
having   count(*) > 1
order by entries desc, key
limit    :limit;

-- name: linker_links
-- The entries of a project that were linked, or for which people said that there is no item.
select   job_id, seq, key, item, entry, state
from     linker_tasks
where    project_id = :project_id and state in ('reviewed', 'auto_confirmed')
         and (job_id > :job_id or (job_id = :job_id and seq > :seq))
order by job_id, seq
limit    :limit;

-- name: linker_counts
select   state, count(*) as entries
from     linker_tasks
where    project_id = :project_id
group by state
order by state;

-- name: linker_linked
select count(*) as entries
from   linker_tasks
where  project_id = :project_id and state in ('reviewed', 'auto_confirmed') and item is not null;

-- The Reconciliation server: what it knows are the candidates of one project.

-- name: linker_add_token
insert into linker_tokens (project_id, hash, shown, created_by, created_at, expires_at)
values (:project_id, :hash, :shown, :created_by, @now,
        case when cast(:seconds as double precision) is null then null
             else @after(:seconds) end)
returning id;

-- name: linker_revoke_token
update linker_tokens
set    revoked_at = @now
where  id = :id and project_id = :project_id and revoked_at is null
returning id;

-- name: linker_tokens_of
select   id, shown, created_by, created_at, expires_at, revoked_at
from     linker_tokens
where    project_id = :project_id
order by id;

-- name: linker_project_of_token
-- Valid while the token is neither expired nor revoked, and its owner is not locked out.
select p.id, p.owner_id, p.name, p.provider, p.language, p.candidates, p.auto_accept, p.lead,
       p.created_at
from   linker_tokens t
       join linker_projects p on p.id = t.project_id
where  t.hash = :hash and t.revoked_at is null and p.deleted_at is null
       and (t.expires_at is null or @seconds_until(t.expires_at) > 0)
       and not exists (select 1
                       from   users u
                       where  u.name in (p.owner_id, t.created_by) and u.disabled <> 0);

-- name: linker_entities_named
-- Entities of a project with a name from `low` to below `high`, or exactly `same`.
select   e.id, e.label, e.description, e.data
from     linker_entities e
where    e.space = :space
         and e.id in (select n.id
                      from   linker_entity_names n
                      where  n.space = :space
                             and ((n.folded >= :low and n.folded < :high) or n.folded = :same))
         and exists (select 1
                     from   linker_candidates c
                     where  c.project_id = :project_id and c.item = e.id)
order by length(e.id), e.id
limit    :limit;

-- name: linker_entities_by_id
select   e.id, e.label, e.description, e.data
from     linker_entities e
where    e.space = :space and e.id in (@each(:ids, text))
         and exists (select 1
                     from   linker_candidates c
                     where  c.project_id = :project_id and c.item = e.id)
order by e.id;

-- name: linker_some_entities
-- Some of the entities that entries of a project were linked to.
select   e.id, e.label, e.description, e.data
from     linker_entities e
where    e.space = :space
         and e.id in (select t.item
                      from   linker_tasks t
                      where  t.project_id = :project_id
                             and t.state in ('reviewed', 'auto_confirmed'))
order by e.id
limit    :limit;

-- name: linker_decided
-- The items that entries of this name were linked to.
select   distinct t.item, t.name, c.label, c.description
from     linker_tasks t
         join linker_candidates c on c.job_id = t.job_id and c.seq = t.seq and c.item = t.item
where    t.project_id = :project_id and t.folded = :folded
         and t.state in ('reviewed', 'auto_confirmed')
order by t.item
limit    :limit;

-- name: linker_move_task
-- Moves the task to another job: if this one is processed again, its entry does not get a second
-- task.
update linker_tasks
set    state = 'moved', project_id = null
where  job_id = :job_id and seq = :seq and reviewed_at is null
returning seq;
