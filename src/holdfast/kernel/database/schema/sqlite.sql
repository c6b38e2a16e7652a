-- What only SQLite has. PostgreSQL has no index on who holds a range: each claim would write an
-- entry in every index of the table. What needs it (a lost worker, the sweep) is rare and reads
-- the table; lists over all jobs ask each job with open items for its oldest.
create index ranges_by_worker on ranges (worker) where worker is not null;
create index ranges_by_since on ranges (since, id);
create index ranges_of_owner_by_since on ranges (owner_id, since, id);

-- The audit can only grow. `insert or replace` deletes without asking the trigger on deletions.
create trigger audit_not_updated before update on audit
begin select raise(abort, 'the audit is append-only'); end;

create trigger audit_not_deleted before delete on audit
when not exists (select 1 from audit_pruning p where old.at < p.before)
begin select raise(abort, 'the audit is append-only'); end;

create trigger audit_not_replaced before insert on audit
when exists (select 1 from audit a where a.id = new.id)
begin select raise(abort, 'the audit is append-only'); end;

create trigger audit_pruning_noted after insert on audit_pruning
begin
    insert into audit (actor, action, job_id, subject, detail, at)
    values (new.actor, 'audit.pruned', null, new.before, '{}', new.at);
end;
