"""What people read: documents, pages, history, streams, search and the export."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable

import pytest

from holdfast.text_search import search_query
from holdfast_meetings.options import DocumentType, Mode
from holdfast_meetings.reads import MeetingsReads
from holdfast_meetings.streams import MeetingsStreams
from pipelines.meetings.tests.site import Row, Site, generated
from pipelines.meetings.tests.town import HASTE, Town

Run = Callable[..., subprocess.CompletedProcess[str]]
COUNCIL = [
    Row("CityCouncil", "2024-03-05", 1, "The bridge over the harbour was discussed."),
    Row("CityCouncil", "2024-03-05", 2, "Motion on the library budget carried."),
    Row("CityCouncil", "2024-02-06", 1, "Hearing about sewers and a Bridge."),
    Row("Parks", "2024-03-05", 1, 'Ñandú, "quotes" and the dog park.'),
]


@pytest.fixture
async def read(town: Town, site: Site) -> MeetingsReads:
    site.add("minutes", COUNCIL)
    site.add("agendas", [Row("CityCouncil", "2024-03-05", 1, "Agenda: bridges.")])
    await town.backfill()
    return MeetingsReads(town.store.database.fetch)


async def test_documents_are_read_newest_first_by_body_and_type(read: MeetingsReads) -> None:
    municipality = await read.municipality("alameda.ca")
    assert municipality is not None
    documents = await read.documents(municipality.id)
    assert [one["date"] for one in documents] == ["2024-03-05"] * 3 + ["2024-02-06"]
    first = await read.documents(municipality.id, limit=2)
    rest = await read.documents(municipality.id, before=(first[-1]["date"], first[-1]["id"]))
    assert first + rest == documents
    parks = await read.documents(municipality.id, meeting="Parks")
    assert [(one["meeting"], one["pages"]) for one in parks] == [("Parks", 1)]
    assert await read.bodies(municipality.id) == [("CityCouncil", 3), ("Parks", 1)]


async def test_pages_of_a_document_come_with_text_and_image(read: MeetingsReads) -> None:
    municipality = await read.municipality("alameda.ca")
    assert municipality is not None
    (document,) = [
        one
        for one in await read.documents(municipality.id, meeting="CityCouncil")
        if (one["date"], one["document_type"]) == ("2024-03-05", "minutes")
    ]
    pages = await read.pages(document["id"])
    assert [page["text"] for page in pages] == [COUNCIL[0].text, COUNCIL[1].text]
    assert pages[0]["page_image"] == "/CityCouncil/2024-03-05/1.png"
    shown = await read.document(document["id"])
    assert shown is not None and shown["subdomain"] == "alameda.ca"


FOUND = {
    "bridge": 3, "BRIDGES": 3, "library budget": 1, '"library budget"': 1, "bridge budget": 0,
    '"budget library"': 0, "ñandú": 1, "": 0, '"': 0, "' OR 1=1 --": 0, "NEAR(": 0, "* : ^ -": 0,
    "quotes": 1,
}  # fmt: skip


async def test_search_finds_pages_by_their_words(read: MeetingsReads) -> None:
    assert {words: len(await read.search(words)) for words in FOUND} == FOUND
    assert [await read.search(words, "berkeley.ca") for words in FOUND] == [[]] * len(FOUND)


async def test_search_follows_what_changes_and_vanishes(
    town: Town, site: Site, read: MeetingsReads
) -> None:
    (found,) = await read.search("library")
    assert found["number"] == 2 and ("library", True) in found["snippet"]
    changed = site.replace("minutes", COUNCIL[1], text="Now about the aquarium.")
    site.remove("minutes", COUNCIL[3])
    await town.backfill(mode="full")
    assert await read.search("library") == [] and await read.search("dog") == []
    assert len(await read.search("aquarium")) == 1
    (page,) = await town.fetch(
        "select id from meetings_pages where upstream_id = :id", id=changed.upstream_id
    )
    (version,) = await read.versions(page[0])
    assert (version["text"], version["state"]) == (COUNCIL[1].text, "SUPERSEDED")


async def test_page_of_more_rare_words_than_a_vector_holds_is_indexed_and_stops_no_other(
    town: Town, site: Site
) -> None:
    letters = [chr(0x20000 + number) for number in range(190)]
    rare = " ".join(f"{one}{other}-{other}{one}" for one in letters for other in letters)
    site.add("minutes", [Row("Parks", "2024-01-01", 1, f"opening words {rare}"), *COUNCIL])
    await town.backfill(types=["minutes"])
    read = MeetingsReads(town.store.database.fetch)
    assert [one["date"] for one in await read.search("opening words")] == ["2024-01-01"]
    assert len(await read.search("bridge")) == 2


async def test_streams_are_listed_with_progress_and_slices(town: Town, read: MeetingsReads) -> None:
    index = MeetingsStreams(town.store.streams).index
    streams = await index(mode=Mode.FULL)
    assert {(one["subdomain"], one["document_type"]) for one in streams} == {
        ("alameda.ca", "agenda"),
        ("alameda.ca", "minutes"),
    }
    minutes = next(one for one in streams if one["document_type"] == "minutes")
    assert (minutes["expected"], minutes["actual"], minutes["job_state"]) == (4, 4, "DONE")
    slices = await town.store.streams.slices(minutes["id"])
    assert slices and slices[0].ended == "complete"
    assert await index(job_state="FAILED") == []
    assert [one["id"] for one in await index(document_type=DocumentType.MINUTES)] == [minutes["id"]]
    counts = await read.counts(minutes["job_id"])
    assert (counts["documents_created"], counts["pages_created"]) == (3, 4)


async def test_commands_add_backfill_list_and_export_every_page(
    run_holdfast: Run, site: Site, datasette: object
) -> None:
    site.add("minutes", generated(120))
    site.add("agendas", COUNCIL)
    bad = Row("Parks", "soon", 1, "No day.")
    site.add("agendas", [bad])
    env = {**HASTE, "HOLDFAST_MEETINGS_REBUILD_SECONDS": "0.05", "HOLDFAST_WORKERS": "1"}
    url = datasette.url  # type: ignore[attr-defined]
    assert run_holdfast("meetings", "add", "alameda.ca", "--url", url, env=env).returncode == 0
    again = run_holdfast("meetings", "add", "alameda.ca", env=env)
    assert again.returncode == 1 and "already exists" in again.stderr
    assert "not started" in run_holdfast("meetings", "list", env=env).stdout
    nothing = run_holdfast("meetings", "export", "alameda.ca", env=env)
    assert (nothing.stdout, nothing.returncode) == ("", 0) and "no pages yet" in nothing.stderr
    loud = run_holdfast("meetings", "add", "ALAMEDA.CA", env=env)
    assert loud.returncode == 1 and "Use lower-case letters" in loud.stderr
    planned = run_holdfast("meetings", "backfill", "alameda.ca", "--dry-run", "--json", env=env)
    assert [one["action"] for one in json.loads(planned.stdout)] == ["start full"] * 2
    done = run_holdfast("meetings", "backfill", "alameda.ca", env=env)
    assert done.returncode == 3, done.stderr
    assert "1 rejected" in done.stderr and "--status ERROR" in done.stderr
    listed = json.loads(run_holdfast("meetings", "list", "--json", env=env).stdout)
    assert {stream["state"] for stream in listed[0]["streams"]} == {"COMPLETE"}
    exported = run_holdfast("meetings", "export", "alameda.ca", "--format", "jsonl", env=env)
    pages = [json.loads(line) for line in exported.stdout.splitlines()]
    site.remove("agendas", bad)
    assert {(p["meeting"], p["date"], p["page"], p["text"], p["id"]) for p in pages} == (
        site.rows("minutes") | site.rows("agendas")
    )
    table = run_holdfast("meetings", "export", "alameda.ca", "--format", "csv", env=env)
    assert len(list(csv.DictReader(io.StringIO(table.stdout)))) == 124
    run = run_holdfast("run", "meetings", "--option", "subdomain=alameda.ca", env=env)
    assert run.returncode == 0 and "start incremental" in run.stdout
    missing = run_holdfast("meetings", "backfill", "nowhere.ca", env=env)
    assert missing.returncode == 1 and "holdfast meetings add nowhere.ca" in missing.stderr


def test_words_are_quoted_for_the_search() -> None:
    assert search_query('bridge "city hall" -x') == '"bridge" "city hall" "-x"'
