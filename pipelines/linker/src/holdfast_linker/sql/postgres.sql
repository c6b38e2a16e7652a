-- Where PostgreSQL needs other words.

-- name: linker_own_project
-- The project of a job, if it belongs to the job's owner. It is not deleted before this transaction
-- has ended: its deletion would miss the rows that are written now.
select id
from   linker_projects
where  id = :id and owner_id = :owner_id and deleted_at is null
for share;
