-- Accounts, sessions, login links, tokens and failed logins.

-- name: users
select   name, role, case when password_hash is null then 0 else 1 end as has_password, disabled, created_at,
         updated_at
from     users
order by name;

-- name: user
select name, role, case when password_hash is null then 0 else 1 end as has_password, disabled, created_at,
       updated_at
from   users
where  name = :name;

-- name: password_hash
select password_hash, disabled
from   users
where  name = :name;

-- name: add_user
insert into users (name, role, password_hash, disabled, created_at, updated_at)
values (:name, :role, cast(:password_hash as text), 0, @now, @now)
on conflict (name) do nothing
returning name;

-- name: change_user
-- Columns that are null stay as they are.
update users
set    role = coalesce(cast(:role as text), role),
       disabled = coalesce(cast(:disabled as smallint), disabled),
       password_hash = coalesce(cast(:password_hash as text), password_hash),
       updated_at = @now
where  name = :name
returning name;

-- name: other_admins
-- Enabled admins besides this one.
select count(*)
from   users
where  role = 'admin' and disabled = 0 and name <> :name;

-- name: add_session
insert into sessions (hash, user_name, ip, created_at, seen_at, expires_at)
values (:hash, :user_name, cast(:ip as text), @now, @now, @after(:seconds));

-- name: session
select u.name, u.role, @seconds_since(s.seen_at) as unseen_seconds
from   sessions s
       join users u on u.name = s.user_name
where  s.hash = :hash and s.expires_at > @now and s.seen_at > @after(:idle) and u.disabled = 0;

-- name: see_session
update sessions
set    seen_at = @now
where  hash = :hash;

-- name: end_session
delete from sessions
where  hash = :hash
returning user_name;

-- name: end_other_sessions
-- A new password ends every session except the one that set it.
delete from sessions
where  user_name = :user_name and hash <> :hash;

-- name: add_login_link
insert into login_links (hash, user_name, created_at, expires_at)
values (:hash, :user_name, @now, @after(:seconds));

-- name: link_owner
select user_name
from   login_links
where  hash = :hash and expires_at > @now;

-- name: use_login_link
-- Once: if two requests come with the same link, one gets in.
delete from login_links
where  hash = :hash
returning user_name, case when expires_at > @now then 1 else 0 end;

-- name: drop_login_links
-- A newer link invalidates the older ones of the person.
delete from login_links
where  user_name = :user_name;

-- name: tokens
-- The tokens of one person, or of all.
select   id, user_name, name, created_at, expires_at, last_used_at, revoked_at
from     tokens
where    user_name = coalesce(cast(:user_name as text), user_name)
order by id;

-- name: add_token
insert into tokens (user_name, name, hash, created_at, expires_at, parent_id)
values (:user_name, :name, :hash, @now,
        case when :expires = 1 then @after(:seconds) end, cast(:parent_id as bigint))
returning id;

-- name: token
select t.id, u.name, u.role, @seconds_since(t.last_used_at) as unused_seconds,
       @seconds_until(t.expires_at) as seconds_left
from   tokens t
       join users u on u.name = t.user_name
where  t.hash = :hash and t.revoked_at is null and u.disabled = 0
       and (t.expires_at is null or t.expires_at > @now);

-- name: use_token
update tokens
set    last_used_at = @now
where  id = :id;

-- name: revoke_token
-- Revokes a token and those that were created with it.
with recursive branch (id) as (
    select id from tokens where id = :id and revoked_at is null
    union
    select t.id from tokens t join branch b on t.parent_id = b.id
)
update tokens
set    revoked_at = @now
where  id in (select id from branch) and revoked_at is null
returning user_name, name;

-- name: revoke_tokens_of_user
update tokens
set    revoked_at = @now
where  user_name = :user_name and revoked_at is null;

-- name: login_block
select subject, @seconds_until(blocked_until) as seconds
from   login_failures
where  subject in (@each(:subjects, text)) and blocked_until > @now;

-- name: add_login_failure
-- A quarter of an hour without a failure resets the count.
insert into login_failures (subject, failures, blocked_until, at)
values (:subject, 1, null, @now)
on conflict (subject) do update
set failures = case when login_failures.at <= @after(-900) then 1
                    else login_failures.failures + 1 end,
    at = excluded.at
returning failures;

-- name: block_login
update login_failures
set    blocked_until = @after(:seconds)
where  subject = :subject;

-- name: clear_login_failures
delete from login_failures
where  subject = :subject;

-- name: forget_sessions
delete from sessions
where  expires_at <= @now;

-- name: forget_login_links
delete from login_links
where  expires_at <= @now;

-- name: forget_login_failures
delete from login_failures
where  at <= @after(-86400);
