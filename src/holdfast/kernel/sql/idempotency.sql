-- Keys of requests and messages, each taken once.

-- name: take_key
-- A key whose process was lost can be taken over, by the same request: its process may wake up, and
-- what it creates is not the answer to another request.
insert into taken_keys (owner_id, key, fingerprint, content, worker, at)
values (:owner_id, :key, :fingerprint, '', :worker, @now)
on conflict (owner_id, key) do update
set at = excluded.at, worker = excluded.worker
where taken_keys.status is null and taken_keys.made is null and taken_keys.worker is null
      and taken_keys.fingerprint = excluded.fingerprint
returning key;

-- name: free_keys_of
-- Requests that a lost process was answering.
update taken_keys
set    worker = null
where  worker = :worker and worker <> '' and status is null and made is null;

-- name: taken_key
select fingerprint, content, status, body, made
from   taken_keys
where  owner_id = :owner_id and key = :key;

-- name: note_made
update taken_keys
set    made = :made, content = :content
where  owner_id = :owner_id and key = :key and status is null and made is null
returning key;

-- name: answer_key
update taken_keys
set    status = :status, body = :body
where  owner_id = :owner_id and key = :key;

-- name: drop_key
delete from taken_keys
where  owner_id = :owner_id and key = :key and status is null and made is null;

-- name: forget_keys
delete from taken_keys
where  at <= @after(:ago);

-- name: count_old_keys
select count(*)
from   taken_keys
where  at <= @after(:ago);
