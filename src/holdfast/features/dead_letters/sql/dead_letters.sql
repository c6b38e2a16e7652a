-- Dead letters. Nothing here writes.

-- name: dead_letters
select   id, kind, job_id, seq, pipeline, code, message, state, created_at, acted_at, actor
from     dead_letters
where    state = :state
order by id
limit    :limit;

-- name: dead_letters_page
-- Dead letters of jobs in scope; messages without a job only for people who see all.
select   d.id, d.kind, d.job_id, d.seq, d.pipeline, d.code, d.message, d.state, d.created_at,
         d.acted_at, d.actor
from     dead_letters d
         left join jobs j on j.id = d.job_id
where    d.state = :state and d.id < :before and (:scope = '' or j.owner_id = :scope)
order by d.id desc
limit    :limit;

-- name: dead_letter
select id, kind, job_id, seq, pipeline, code, message, state, created_at, acted_at, actor,
       message_id, queue, payload, history
from   dead_letters
where  id = :id;

-- name: dead_letter_in_scope
select d.id
from   dead_letters d
       left join jobs j on j.id = d.job_id
where  d.id = :id and (:scope = '' or j.owner_id = :scope);

-- name: dead_letters_of_item
select   id, code, message, state, created_at, acted_at, actor
from     dead_letters
where    job_id = :job_id and seq = :seq
order by id;
