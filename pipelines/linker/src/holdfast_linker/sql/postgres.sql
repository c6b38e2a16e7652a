-- The queries of linker that differ on PostgreSQL.

-- name: linker_own_project
-- The project of a job, if it belongs to the job's owner. It is locked until this transaction has
-- ended: its deletion would otherwise miss the rows that are written now.
select id
from   linker_projects
where  id = :id and owner_id = :owner_id and deleted_at is null
for share;

-- name: linker_hold_projects
-- One request at a time adds to the projects of an owner, who may have none yet.
select pg_advisory_xact_lock(hashtextextended('linker projects ' || cast(:owner_id as text), 0));
