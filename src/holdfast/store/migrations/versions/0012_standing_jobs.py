"""Adds standing jobs, and counters that are added to instead of updated.

Revision ID: 0012
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_COUNTS = "accepted, done, not_found, skipped, error, retried, throttled, known"

#: A row for each change, summed on reading and folded now and then: two processes never wait for
#: each other here, and a transaction that is held open for long makes no row slow to update.
_COUNTERS = """
create table new_counters (
    job_id     bigint not null,
    {WORKER}
    accepted   bigint not null,
    done       bigint not null,
    not_found  bigint not null,
    skipped    bigint not null,
    error      bigint not null,
    retried    bigint not null,
    throttled  bigint not null,
    known      bigint not null,
    updated_at {INSTANT} not null{KEY}
)
"""
_SUMS = ", ".join(f"sum({name})" for name in _COUNTS.split(", "))


def upgrade() -> None:
    op.execute("alter table jobs add column standing smallint not null default 0")
    op.execute(
        "create unique index jobs_standing on jobs (pipeline, owner_id)"
        " where standing = 1 and state <> 'CANCELLED'"
    )
    if _is_postgres():
        # Numbers of items that applications add: a row of jobs that every transaction updated would
        # make them wait for each other.
        op.execute("create sequence standing_seqs")
    _replace_counters("", "", f"select job_id, {_COUNTS}, updated_at from counters")
    op.execute("create index counters_by_job on counters (job_id)")


def downgrade() -> None:
    _replace_counters(
        "worker text not null,",
        ", primary key (job_id, worker)",
        f"select job_id, '', {_SUMS}, max(updated_at) from counters group by job_id",
    )
    if _is_postgres():
        # Later numbers of these jobs come from their rows again.
        op.execute(
            "update jobs set next_seq = greatest(next_seq,"
            " (select coalesce(max(seq), 0) + 1 from items i where i.job_id = jobs.id))"
            " where standing = 1"
        )
        op.execute("drop sequence standing_seqs")
    op.execute("drop index jobs_standing")
    op.execute("alter table jobs drop column standing")


def _replace_counters(worker: str, key: str, rows: str) -> None:
    instant = "timestamptz" if _is_postgres() else "text"
    op.execute(_COUNTERS.format(WORKER=worker, KEY=key, INSTANT=instant))
    op.execute(f"insert into new_counters {rows}")
    op.execute("drop table counters")
    op.execute("alter table new_counters rename to counters")
    if key and _is_postgres():
        op.execute("alter index new_counters_pkey rename to counters_pkey")
        op.execute("alter table counters set (fillfactor = 50)")


def _is_postgres() -> bool:
    return op.get_context().dialect.name == "postgresql"
