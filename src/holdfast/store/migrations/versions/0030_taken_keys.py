"""One table of keys that were taken, for requests and messages.

Revision ID: 0030
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

TYPES = {
    "postgresql": {"INSTANT": "timestamptz", "BLANK": "strpos(fingerprint, ' ')"},
    "sqlite": {"INSTANT": "text", "BLANK": "instr(fingerprint, ' ')"},
}

UP = """
create table taken_keys (
    owner_id    text not null,
    key         text not null,
    fingerprint text not null,
    content     text not null,
    made        bigint,
    status      integer,
    body        text,
    worker      text,
    at          {INSTANT} not null,
    primary key (owner_id, key)
);
create index taken_keys_by_at on taken_keys (at);
create index taken_keys_by_worker on taken_keys (worker)
    where worker <> '' and status is null and made is null;
insert into taken_keys (owner_id, key, fingerprint, content, made, status, body, at)
select user_name, key,
       case when {BLANK} > 0 then substr(fingerprint, 1, {BLANK} - 1) else fingerprint end,
       case when {BLANK} > 0 then substr(fingerprint, {BLANK} + 1) else '' end,
       case when status is null then cast(body as bigint) end,
       status,
       case when status is not null then body end,
       at
from   requests;
insert into taken_keys (owner_id, key, fingerprint, content, made, worker, at)
select '', message_id, type, '', 0, '', at
from   inbox;
drop table requests;
drop table inbox
"""

DOWN = """
create table requests (
    user_name   text not null,
    key         text not null,
    fingerprint text not null,
    status      integer,
    body        text,
    at          {INSTANT} not null,
    primary key (user_name, key)
);
create index requests_by_at on requests (at);
create table inbox (
    message_id text primary key,
    type       text not null,
    at         {INSTANT} not null
);
create index inbox_by_at on inbox (at);
insert into requests (user_name, key, fingerprint, status, body, at)
select owner_id, key,
       case when content = '' then fingerprint else fingerprint || ' ' || content end,
       status, coalesce(body, cast(made as text)), at
from   taken_keys
where  owner_id <> '';
insert into inbox (message_id, type, at)
select key, fingerprint, at
from   taken_keys
where  owner_id = '';
drop table taken_keys
"""


def upgrade() -> None:
    _execute(UP)


def downgrade() -> None:
    _execute(DOWN)


def _execute(script: str) -> None:
    for statement in script.format(**TYPES[op.get_context().dialect.name]).split(";"):
        op.execute(statement)
