-- How much of everything belongs to one owner.

-- name: usage
select (select count(*) from files where owner_id = :owner) as files,
       (select coalesce(sum(size), 0) from files where owner_id = :owner)
       + (select coalesce(sum(size), 0) from exports where owner_id = :owner) as bytes,
       (select count(*) from exports where owner_id = :owner and state <> 'FAILED') as exports,
       (select count(*) from jobs
        where owner_id = :owner and state in ('QUEUED', 'RUNNING', 'PAUSED')) as jobs,
       (select count(*) from tokens
        where user_name = :owner and revoked_at is null
              and (expires_at is null or expires_at > @now)) as tokens;
