-- The audit log. Nothing here writes.

-- name: audit_page
-- What was done by the person or to their jobs; everything for those who see all.
select   a.id, a.actor, a.action, a.job_id, a.subject, a.detail, a.at
from     audit a
         left join jobs j on j.id = a.job_id
where    a.id < :before and (:scope = '' or a.actor = :scope or j.owner_id = :scope)
         and (:job_id = 0 or a.job_id = :job_id)
order by a.id desc
limit    :limit;

-- name: audit_of_item
-- Decisions about the item, and the latest changes to items of its job; which these were is in
-- their detail.
select   id, actor, action, subject, detail, at
from     audit
where    job_id = :job_id and subject = :subject and action like 'ruling.%'
union all
select   id, actor, action, subject, detail, at
from     (select   *
          from     audit
          where    job_id = :job_id and subject = '' and action in ('skip', 'reprocess')
          order by id desc
          limit    500) changes
order by id;

-- name: open_audit_pruning
-- Lets rows before that time go until it is closed, in the same transaction.
insert into audit_pruning (before, actor, at)
values (@after(:seconds), :actor, @now);

-- name: prune_audit
delete from audit
where  at < (select max(before) from audit_pruning)
returning id;

-- name: close_audit_pruning
delete from audit_pruning;
