-- What only PostgreSQL has.

-- Numbers of items that applications add: a row of jobs that every transaction updated would
-- make them wait for each other.
create sequence standing_seqs;

-- Large values are compressed by lz4, which costs a fraction of what the server's own way costs;
-- and records of up to four kilobytes stay in their row, where the default of two puts many a
-- page of text elsewhere, at half as much again for each write and read. A server that was built
-- without lz4 continues as before.
alter table items set (toast_tuple_target = 4080);
alter table outcomes set (toast_tuple_target = 4080);
do $$
begin
    alter table items alter column input set compression lz4;
    alter table outcomes alter column normalized set compression lz4;
    alter table outcomes alter column result set compression lz4;
exception when feature_not_supported then null;
end
$$;

-- The audit can only grow.
create trigger audit_append_only before update or delete on audit
for each row execute function audit_is_append_only_1();

create trigger audit_not_truncated before truncate on audit
for each statement execute function audit_is_append_only_1();

create trigger audit_pruning_noted after insert on audit_pruning
for each row execute function audit_notes_pruning_1();
