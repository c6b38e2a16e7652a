-- The cache of look-ups.

-- name: cached
-- The entries of these keys that have not expired.
select key, value
from   cache
where  scope = :scope and key in (@each(:keys, text)) and expires_at > @now;

-- name: put_cached
insert into cache (scope, key, value, expires_at)
select r.scope, r.key, r.value, @after(r.seconds)
from   @rows(scope text, key text, value text, seconds float8) r
where  true
on conflict (scope, key) do update
set value = excluded.value, expires_at = excluded.expires_at;

-- name: drop_cached
delete from cache
where  scope = :scope and key in (@each(:keys, text));

-- name: prune_cached
-- Removes up to :most entries that have expired, oldest first.
delete from cache
where  (scope, key) in (
           select scope, key
           from   cache
           where  expires_at <= @now
           order by expires_at
           limit  :most
           @skip_locked
       )
returning 1;
