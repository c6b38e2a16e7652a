-- Requests with an idempotency key, each answered once.

-- name: begin_request
-- Only the first takes it; one whose process is silent may be taken over, by the same request: its
-- process may wake up, and what it makes is not the answer to another.
insert into requests (user_name, key, fingerprint, at)
values (:user_name, :key, :fingerprint, @now)
on conflict (user_name, key) do update
set at = excluded.at
where requests.status is null and requests.body is null and requests.at <= @after(-20)
      and requests.fingerprint = excluded.fingerprint
returning key;

-- name: renew_request
-- It is still being answered.
update requests
set    at = @now
where  user_name = :user_name and key = :key and status is null and body is null;

-- name: request
select fingerprint, status, body
from   requests
where  user_name = :user_name and key = :key;

-- name: answer_request
update requests
set    status = :status, body = :body
where  user_name = :user_name and key = :key;

-- name: drop_request
delete from requests
where  user_name = :user_name and key = :key and status is null and body is null;

-- name: forget_requests
delete from requests
where  at <= @after(-86400);
