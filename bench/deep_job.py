"""A job of millions of items, put straight into the tables in the shape that the engine leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg

from bench.api_runs import OWNER, settings
from bench.holdfast_runs import NOOP, Postgres
from bench.measure import RunFailed, python, run_to_end
from holdfast.features.items.item_lists import PendingScope
from holdfast.features.items.items import ItemFilter, Position
from holdfast.features.items.params import items_shown
from holdfast.features.items.pending_shapes import pending_shown
from holdfast.model import ItemStatus
from holdfast.server.cursors import Cursors
from tests.names import whole_names

RANGE_ITEMS = 5_000
LEASED_RANGES = 4  # that two workers hold
ERROR_EVERY = 20
SETTLED_AT_ONCE = 1_000

_ITEMS = """
insert into items (job_id, seq, key, input)
select %(job)s, n, null, cast(
    '{"id":"' || n || '","title":"Hex bolt M8 x ' || n %% 400 + 10 || ' stainless steel A2 pack of '
    || n %% 90 + 10 || '","brand":"Example Fasteners GmbH","sku":"SKU-' || lpad(n::text, 10, '0')
    || '","gtin":"' || 4006381000000 + n || '","note":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"}' as json)
from   generate_series(2, %(count)s) n
"""
_RANGES = """
insert into ranges (job_id, lo, hi, again, available_at, token, settled, worker,
                    expiries, lone_expiries, item_bytes, since, owner_id, pipeline)
select %(job)s, lo, least(lo + %(size)s - 1, %(count)s), 0, now(),
       case when lo <= %(leased)s then lo::text end, 0,
       case when lo <= %(leased)s then 'worker' end,
       0, 0, 200, now() - interval '1 hour' + make_interval(secs => lo / 100000.0),
       %(owner)s, 'noop'
from   generate_series(1, %(count)s, %(size)s) lo
"""
_OUTCOMES = """
insert into outcomes (job_id, seq, status, tries, attempts, misses, result, error_code,
                      error_message, seconds, updated_at)
select %(job)s, n, case when n %% %(error_every)s = 0 then 'ERROR' else 'DONE' end, 1, 1, 0,
       case when n %% %(error_every)s <> 0
            then cast('{"id":"' || n || '","ok":true,"title_len":52}' as json) end,
       case when n %% %(error_every)s = 0 then 'INVALID' end,
       case when n %% %(error_every)s = 0 then 'it cannot be used' end, 0.0001,
       now() - interval '1 hour' + make_interval(secs => (n / %(at_once)s) * 0.02)
from   generate_series(1, %(count)s) n
"""


class DeepJob:
    """A job that is all open at first; `finish` gives every item its outcome.

    `file` contains the one row from which the job is really created."""

    def __init__(self, database: Postgres, file: Path, count: int) -> None:
        self._database = database
        self.count = count
        command = python("holdfast", "run", NOOP, file, "--new", "--no-work")
        run_to_end([command], file.parent, settings(database, file.parent))
        self.id = database.newest_job()
        self._run("delete from ranges where job_id = %(job)s")
        self._run(_ITEMS)
        self._run(_RANGES)
        self._run("update jobs set next_seq = %(count)s + 1 where id = %(job)s")
        self._run("update counters set accepted = %(count)s where job_id = %(job)s")
        database.settle_down()

    def finish(self) -> None:
        self._run(_OUTCOMES)
        self._run("delete from ranges where job_id = %(job)s")
        self._run("update jobs set state = 'DONE', finished_at = now() where id = %(job)s")
        self._run(
            "update counters set error = accepted / %(error_every)s,"
            " done = accepted - accepted / %(error_every)s where job_id = %(job)s"
        )
        self._database.settle_down()

    def items_cursor(self, statuses: tuple[ItemStatus, ...], depth: int) -> str | None:
        """Returns the cursor of a page with `depth` items before it, as the API would have returned
        it."""
        if not depth:
            return None
        position: Position = {"phase": "seq", "seq": depth}
        if statuses:
            # With one status only, the same depth is a little further on.
            seq = depth if len(statuses) > 1 else depth * ERROR_EVERY // (ERROR_EVERY - 1)
            query = "select updated_at from outcomes where job_id = %(job)s and seq = %(seq)s"
            (at,) = self._row(query, seq=seq)
            position = {"phase": "final", "seq": seq, "at": at.isoformat()}
        return self._cursor("items", items_shown(self.id, ItemFilter(statuses)), position)

    def pending_cursor(self, statuses: tuple[ItemStatus, ...], depth: int) -> str | None:
        if not depth:
            return None
        query = "select id, since from ranges where job_id = %(job)s and %(seq)s between lo and hi"
        range_id, since = self._row(query, seq=depth)
        position = {"at": since.isoformat(), "range": range_id, "seq": depth}
        bound = pending_shown(PendingScope(OWNER), ItemFilter(statuses))
        return self._cursor("pending", bound, position)

    def _cursor(self, name: str, bound: dict[str, Any], position: Position) -> str:
        (secret,) = self._row("select value from secrets where name = 'signing'")
        return Cursors(bytes.fromhex(secret), name, OWNER, bound).write(position)

    def _row(self, query: str, **params: object) -> tuple[Any, ...]:
        with psycopg.connect(self._database.url) as connection:
            whole = whole_names(self._database.url, query)
            found = connection.execute(whole, {"job": self.id, **params}).fetchone()
        if found is None:
            raise RunFailed(f"nothing was found: {query}")
        return found

    def _run(self, statement: str) -> None:
        params = {
            "job": self.id,
            "count": self.count,
            "owner": OWNER,
            "size": RANGE_ITEMS,
            "leased": RANGE_ITEMS * LEASED_RANGES,
            "error_every": ERROR_EVERY,
            "at_once": SETTLED_AT_ONCE,
        }
        used = {name: value for name, value in params.items() if f"%({name})s" in statement}
        with psycopg.connect(self._database.url) as connection:
            connection.execute(whole_names(self._database.url, statement), used)
