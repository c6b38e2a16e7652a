-- Deleting files, exports and what belongs to one person.

-- name: job_using_file
-- A job that may still read the file.
select id
from   jobs
where  file_id = :file_id and state in ('QUEUED', 'RUNNING', 'PAUSED')
limit  1;

-- name: image_jobs_after
-- Jobs over images that are newer than a file and may still read it, and which files their lists
-- name.
select j.id, l.owner_id, cast(l.detected as text) as detected
from   jobs j
       join files l on l.id = j.file_id
where  l.kind = 'images' and l.id > :file_id and j.state in ('QUEUED', 'RUNNING', 'PAUSED');

-- name: delete_file
delete from files
where  id = :id
returning id;

-- name: delete_export
delete from exports
where  id = :id
returning id;

-- name: mark_user
update users
set    deleting = 1, disabled = 1, updated_at = @now
where  name = :name and deleting = 0
returning name;

-- name: deleting_users
select   name
from     users
where    deleting = 1
order by name;

-- name: hold_deleting_user
-- Nothing if another process has deleted it: a new account may have the name by now.
select name
from   users
where  name = :name and deleting = 1
@for_update;

-- name: jobs_of_owner
select   id
from     jobs
where    owner_id = :owner
order by id
limit    :limit;

-- name: delete_sessions_of_user
delete from sessions
where  user_name = :name;

-- name: delete_links_of_user
delete from login_links
where  user_name = :name;

-- name: delete_tokens_of_user
delete from tokens
where  user_name = :name;

-- name: delete_second_factor_of_user
delete from second_factors
where  user_name = :name;

-- name: delete_recovery_codes_of_user
delete from recovery_codes
where  user_name = :name;

-- name: delete_keys_of_user
delete from taken_keys
where  owner_id = :name;

-- name: delete_operations_of_user
delete from operations
where  owner_id = :name;

-- name: delete_user
delete from users
where  name = :name;
