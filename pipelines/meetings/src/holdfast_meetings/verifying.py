"""Verifies that a pass left nothing out, by comparing all ids of the site with ours.

The walk proves that the site has no further rows. This proves that each row of the site is stored
as a page, as a duplicate of one, or as a reject, and that nothing else is. Both lists are in id
order, so each page of the inventory is compared with the same range of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.model import Job, Json, StreamStatus
from holdfast.orders import Conclusion, Reopen, Unproven, Verified
from holdfast.pipeline import Tx
from holdfast_meetings import searching
from holdfast_meetings.options import Collection, MeetingsOptions, Mode
from holdfast_meetings.walking import (
    Cursor,
    gaps_cursor,
    inventory_cursor,
    marks_of,
    walk_cursor,
)

_ROUNDS = 6
_MOST_GAPS = 2000  # beyond that, reading everything again costs less than requests by id
_FEW_VANISHED = 10
_SMALL_SHARE = 0.01
_LARGE_SHARE = 0.1
_LAST_ID = chr(0x10FFFF) * 4  # greater than every id, in the order of bytes


async def note_inventory(tx: Tx, job: Job, notes: Json) -> None:
    """Compares one page of the site's ids with what is stored for that range."""
    collection = Collection.of(job.options)
    if notes["first"]:
        await tx.take("meetings_drop_differences", {"job_id": job.id})
    bounds = {"after": notes["after"] or "", "upto": notes["upto"] or _LAST_ID}
    known = await tx.fetch("meetings_known_ids", {**collection.params, **bounds})
    upstream = set(notes["ids"])
    shown, moved = _shown_pages(known)
    older = {row[1]: row[2] for row in known if row[0] == "HISTORY" and row[1] not in shown}
    rejects = {row[1] for row in known if row[0] == "REJECT"}
    gone = sorted(rejects - upstream | rejects & shown.keys())
    if gone:
        await tx.take("meetings_drop_rejects", {**collection.params, "ids": gone})
    differences: list[tuple[str, str, int | None]] = [
        *(("VANISHED", row_id, shown[row_id]) for row_id in shown.keys() - upstream),
        *(("VANISHED", row_id, page_id) for row_id, page_id in moved),
        *(("MISSING", row_id, None) for row_id in upstream - shown.keys() - older.keys() - rejects),
        *(("OLDER", row_id, older[row_id]) for row_id in upstream & older.keys()),
    ]
    rows = [(job.id, *difference) for difference in sorted(differences, key=lambda d: d[:2])]
    if rows:
        await tx.take_many("meetings_add_differences", rows)


def _shown_pages(known: Sequence[Sequence[Any]]) -> tuple[dict[str, int], list[tuple[str, int]]]:
    """Returns the page that shows each id; and pages whose row moved to another place, on a site
    that keeps the id when a row changes."""
    shown: dict[str, int] = {}
    moved = []
    pages = [row for row in known if row[0] == "PAGE" and not row[3]]
    for _, upstream_id, page_id, _, _ in sorted(pages, key=lambda row: (row[4], row[2])):
        if upstream_id in shown:
            moved.append((upstream_id, shown[upstream_id]))
        shown[upstream_id] = page_id
    return shown, moved


class Verifier:
    """Decides whether an ended stream is complete, in the transaction that would end its job."""

    def __init__(self, tx: Tx, job: Job, stream: StreamStatus, options: MeetingsOptions) -> None:
        self._tx = tx
        self._job = job
        self._options = options
        self._mode = Mode(stream.mode)
        self._collection = Collection.of(job.options)
        self._cursor: Cursor = stream.cursor
        self._marks = marks_of(stream.cursor)
        self._last_round = self._marks["round"] - self._marks["since"] >= _ROUNDS - 1

    async def conclude(self) -> Conclusion:
        phase = self._cursor["phase"]
        if phase == "read" and self._mode is Mode.INCREMENTAL:
            return await self._compare_counts()
        if phase == "read":
            return Reopen(inventory_cursor(self._marks))
        if phase == "filled":
            return Reopen(inventory_cursor(self._next_round()))
        return await self._judge_inventory()

    async def _compare_counts(self) -> Conclusion:
        """Compares the counts.

        A different count shows that something outside the window changed. An equal count proves
        nothing, because a page that was scanned again does not change it. So an inventory is taken
        from time to time anyway."""
        site_count = self._cursor["site_count"]
        stored = await self._count()
        # Before the first full pass they cannot be equal, and that pass will close the gap.
        complete = self._job.options.get("complete")
        if complete and (site_count not in (None, stored) or await self._is_inventory_due()):
            return Reopen(inventory_cursor(self._marks))
        return Verified(site_count, stored, proven=False)

    async def _is_inventory_due(self) -> bool:
        """Whether an inventory is due: if the last one is old, or if the site reported a change and
        the months around today did not change."""
        if self._job.options.get("inventory"):
            return True
        if not self._job.options.get("reported"):
            return False
        counts = (await self._tx.fetch("meetings_counts", {"job_id": self._job.id}))[0]
        created, updated = counts["pages_created"], counts["pages_updated"]
        return not created + updated

    async def _judge_inventory(self) -> Conclusion:
        rows, site_count = self._cursor["rows"], self._cursor["site_count"]
        gaps = await self._gaps()
        if self._last_round and (gaps or site_count not in (None, rows)):
            return self._unproven(
                f"the site changes as fast as it is read: {len(gaps)} rows are missing after "
                f"{_ROUNDS} rounds; run it again when the site is quiet"
            )
        if gaps:
            await self._tx.take("meetings_yield_vanished_pages", {"job_id": self._job.id})
        if len(gaps) > _MOST_GAPS:
            return Reopen(walk_cursor(self._next_round()))
        if gaps:
            await self._let_in(gaps)
            return Reopen(gaps_cursor(self._marks, gaps))
        if site_count not in (None, rows):
            return Reopen(inventory_cursor(self._next_round()), self._options.rebuild_seconds)
        return await self._judge_vanished(rows)

    async def _judge_vanished(self, rows: int) -> Conclusion:
        """Judges vanished rows.

        A site that is being rebuilt is briefly incomplete. If many pages vanished, they must be
        missing twice; a table that is suddenly empty is not believed at all."""
        params = {"job_id": self._job.id}
        rows_by_kind = await self._tx.fetch("meetings_count_differences", params)
        vanished = {row[0]: row[1] for row in rows_by_kind}.get("VANISHED", 0)
        if vanished and not rows:
            return self._unproven(
                f"the site shows an empty table, but {vanished} pages of it are stored; "
                "nothing was changed"
            )
        many = vanished > max(_FEW_VANISHED, _SMALL_SHARE * rows) or vanished > _LARGE_SHARE * rows
        unsure = many or not rows
        if unsure and self._cursor.get("vanished") != vanished:
            if self._last_round:
                return self._unproven(
                    f"{vanished} pages vanished from the site, a different number each time"
                )
            again = inventory_cursor(self._next_round(), vanished=vanished)
            patience = self._options.rebuild_seconds
            # If nothing is stored there is nothing to lose: most empty tables are just empty.
            return Reopen(again, patience if vanished else patience / 10)
        return await self._accept(rows)

    async def _accept(self, rows: int) -> Conclusion:
        job = {"job_id": self._job.id}
        collection = {**self._collection.params, **job}
        vanished = await self._tx.take("meetings_vanish_pages", job)
        place = (self._collection.municipality_id, self._collection.document_type.value)
        await searching.enqueue(self._tx, place, [row[0] for row in vanished])
        await self._tx.take("meetings_mark_duplicates", collection)
        await self._tx.take("meetings_mark_superseded", collection)
        await self._tx.take("meetings_drop_differences", job)
        stored = await self._count()
        if stored != rows:
            return self._unproven(f"the site has {rows} rows, but {stored} are accounted for")
        return Verified(rows, stored, proven=True)

    def _next_round(self) -> Cursor:
        return {**self._marks, "round": self._marks["round"] + 1}

    def _unproven(self, error: str) -> Unproven:
        """Ends the attempt without proof.

        When resumed, it begins with another inventory and counts its rounds from one."""
        following = self._marks["round"] + 1
        return Unproven(error, inventory_cursor({"round": following, "since": following}))

    async def _gaps(self) -> list[str]:
        params = {"job_id": self._job.id, "limit": _MOST_GAPS + 1}
        return [row[0] for row in await self._tx.fetch("meetings_gaps", params)]

    async def _let_in(self, ids: Sequence[str]) -> None:
        """Lets older versions that are on the site again replace the current pages."""
        forgotten: list[Any] = await self._tx.take(
            "meetings_forget_versions", {**self._collection.params, "ids": list(ids)}
        )
        pages = sorted({row[0] for row in forgotten})
        if pages:
            await self._tx.take("meetings_yield_pages", {"ids": pages})

    async def _count(self) -> int:
        rows = await self._tx.fetch("meetings_count_rows", self._collection.params)
        return sum(rows[0])
