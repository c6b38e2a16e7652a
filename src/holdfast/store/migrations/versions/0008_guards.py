"""An audit that can only grow, second factors, tokens made by tokens, numbers used once.

Revision ID: 0008
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

INSTANT = {"postgresql": "timestamptz", "sqlite": "text"}

TABLES = """
create table audit_pruning (
    before {INSTANT} not null,
    actor  text not null,
    at     {INSTANT} not null
);

create table second_factors (
    user_name  text primary key,
    secret     text not null,
    confirmed  smallint not null,
    last_step  bigint not null,
    created_at {INSTANT} not null
);

create table recovery_codes (
    user_name text not null,
    hash      text not null,
    primary key (user_name, hash)
);

create table nonces (
    scope text not null,
    nonce text not null,
    at    {INSTANT} not null,
    primary key (scope, nonce)
);
create index nonces_by_at on nonces (at);
"""

#: Rows may only go while a pruning is noted, which notes itself in the audit.
POSTGRES = (
    """create function audit_is_append_only() returns trigger language plpgsql as $$
    begin
        if tg_op = 'DELETE' then
            if exists (select 1 from audit_pruning p where old.at < p.before) then
                return old;
            end if;
        end if;
        raise exception 'the audit is append-only';
    end $$""",
    """create trigger audit_append_only before update or delete on audit
    for each row execute function audit_is_append_only()""",
    """create trigger audit_not_truncated before truncate on audit
    for each statement execute function audit_is_append_only()""",
    """create function audit_notes_pruning() returns trigger language plpgsql as $$
    begin
        insert into audit (actor, action, job_id, subject, detail, at)
        values (new.actor, 'audit.pruned', null,
                cast(new.before at time zone 'UTC' as text), '{}', new.at);
        return new;
    end $$""",
    """create trigger audit_pruning_noted after insert on audit_pruning
    for each row execute function audit_notes_pruning()""",
)
SQLITE = (
    """create trigger audit_not_updated before update on audit
    begin select raise(abort, 'the audit is append-only'); end""",
    """create trigger audit_not_deleted before delete on audit
    when not exists (select 1 from audit_pruning p where old.at < p.before)
    begin select raise(abort, 'the audit is append-only'); end""",
    # `insert or replace` deletes without asking the trigger above.
    """create trigger audit_not_replaced before insert on audit
    when exists (select 1 from audit a where a.id = new.id)
    begin select raise(abort, 'the audit is append-only'); end""",
    """create trigger audit_pruning_noted after insert on audit_pruning
    begin
        insert into audit (actor, action, job_id, subject, detail, at)
        values (new.actor, 'audit.pruned', null, new.before, '{}', new.at);
    end""",
)


def upgrade() -> None:
    dialect = op.get_context().dialect.name
    for statement in TABLES.format(INSTANT=INSTANT[dialect]).split(";"):
        if statement.strip():
            op.execute(statement)
    op.execute("alter table tokens add column parent_id bigint")
    for statement in POSTGRES if dialect == "postgresql" else SQLITE:
        op.execute(statement)


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("drop trigger audit_append_only on audit")
        op.execute("drop trigger audit_not_truncated on audit")
    else:
        for name in ("audit_not_updated", "audit_not_deleted", "audit_not_replaced"):
            op.execute(f"drop trigger {name}")
    op.execute("alter table tokens drop column parent_id")
    for name in ("nonces", "recovery_codes", "second_factors", "audit_pruning"):
        op.execute(f"drop table {name}")
    if op.get_context().dialect.name == "postgresql":
        op.execute("drop function audit_is_append_only()")
        op.execute("drop function audit_notes_pruning()")
