"""Documents are looked up once by a process; never wrongly, whatever happens to the database."""

from __future__ import annotations

import pytest

from holdfast.kernel import Store
from holdfast_meetings import documents
from holdfast_meetings.documents import Document, KnownDocuments, Witness
from pipelines.meetings.tests.site import Site, generated
from pipelines.meetings.tests.town import Town
from tests.store.checks import execute

MINUTES, AGENDAS = (1, "minutes"), (1, "agenda")
COUNCIL = ("Council", "2026-01-31")


async def test_pages_of_a_restored_database_belong_to_their_documents(
    town: Town, site: Site
) -> None:
    site.add("minutes", generated(60))
    await town.backfill(types=["minutes"])
    # As if from a dump of an earlier time, into which other documents were then written.
    await _exchange_documents(town.store)
    await town.backfill(types=["minutes"], mode="full", force=True)
    assert await town.pages() == site.rows("minutes")


async def _exchange_documents(store: Store) -> None:
    await execute(store, "delete from meetings_pages")
    await execute(store, "update meetings_documents set id = id + 1000")
    await execute(
        store,
        "insert into meetings_documents (id, municipality_id, document_type, meeting, date)"
        " select id - 1000, municipality_id, document_type, 'Other ' || meeting, date"
        " from meetings_documents",
    )


async def test_documents_are_counted_once_for_each_job(town: Town, site: Site) -> None:
    site.add("minutes", generated(60))
    await town.backfill(types=["minutes"])
    await town.backfill(types=["minutes"], mode="full", force=True)
    counts = await town.fetch(
        "select sum(documents_created), sum(documents_seen) from meetings_counts"
        " group by job_id order by job_id"
    )
    (created,) = (await town.fetch("select count(*) from meetings_documents"))[0]
    assert [tuple(map(int, row)) for row in counts] == [(created, 0), (0, created)]


def test_documents_of_one_collection_are_not_those_of_another() -> None:
    known = KnownDocuments()
    known.add(MINUTES, {COUNCIL: Document(7, 1, 1)}, Witness(7, "now"))
    assert known.of(MINUTES) == {COUNCIL: Document(7, 1, 1)}
    assert not known.of(AGENDAS) and known.newest(AGENDAS) is None
    known.forget(MINUTES)
    assert not known.of(MINUTES) and known.newest(MINUTES) is None


def test_the_newest_document_is_the_witness() -> None:
    known = KnownDocuments()
    known.add(MINUTES, {COUNCIL: Document(7, 1, 1)}, Witness(7, "now"))
    known.add(MINUTES, {COUNCIL: Document(7, 2, 1)}, None)
    known.add(MINUTES, {("Zoning", "2026-01-31"): Document(5, 1, 1)}, Witness(5, "before"))
    assert known.newest(MINUTES) == Witness(7, "now")
    assert known.of(MINUTES)[COUNCIL].seen_job_id == 2


def test_only_so_many_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_MOST", 1)
    known = KnownDocuments()
    known.add(MINUTES, {COUNCIL: Document(7, 1, 1)}, Witness(7, "now"))
    known.add(AGENDAS, {COUNCIL: Document(8, 1, 1)}, Witness(8, "now"))
    assert not known.of(MINUTES) and known.of(AGENDAS)
