-- How much of everything belongs to one owner.

-- name: usage
select (select count(*) from files where owner_id = :owner) as files,
       (select coalesce(sum(size), 0) from files where owner_id = :owner)
       + (select coalesce(sum(size), 0) from exports where owner_id = :owner) as bytes,
       (select count(*) from exports where owner_id = :owner and state <> 'FAILED') as exports,
       (select count(*) from jobs
        where owner_id = :owner and state in ('QUEUED', 'RUNNING', 'PAUSED')) as jobs,
       (select coalesce(sum(c.accepted
                            - coalesce(c.done + c.not_found + c.skipped + c.error, 0)), 0)
        from   jobs j join counters c on c.job_id = j.id
        where  j.owner_id = :owner and j.state in ('QUEUED', 'RUNNING', 'PAUSED')) as items,
       (select count(*) from tokens
        where user_name = :owner and revoked_at is null
              and (expires_at is null or expires_at > @now)) as tokens;
