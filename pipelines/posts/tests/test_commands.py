"""`holdfast posts messages`, `release` and `quality`, as an operator types them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from holdfast.errors import UserError
from holdfast.store import Store
from holdfast_posts.quality.measuring import read_labelled
from pipelines.posts.tests.desk import Desk

_HEADER = b"language\tsentiment\tintent\ttext\n"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_messages_are_listed_and_released_by_key_or_event_id(
    store: Store, run_holdfast: Callable[..., CompletedProcess[str]]
) -> None:
    desk = Desk(store)
    await desk.take(desk.event("broken.json", b"{"))

    async def run(*arguments: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(run_holdfast, "posts", *arguments)

    listed = json.loads((await run("messages", "--json")).stdout)
    assert [(row["state"], row["code"], row["due_at"]) for row in listed] == [
        ("DEAD", "BATCH_CORRUPT", None)
    ]
    event_id = listed[0]["key"].removeprefix("event:")
    missing = await run("release", "evt_none")
    assert missing.returncode == 1
    assert "holdfast posts messages" in missing.stderr
    assert "1 message will be tried again" in (await run("release", event_id)).stderr
    assert "WAITING" in (await run("messages", "--state", "waiting")).stdout


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_HEADER, "has no posts"),
        (b"\xed\xa0\xff", "UTF-8"),
        (_HEADER + b"en\tGOOD\tLEAD\tx", "'GOOD'"),
        (_HEADER + b"en\tPOSITIVE\tLEAD", "3 columns"),
    ],
)
def test_mistakes_in_a_file_of_labels_are_named(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=reason):
        read_labelled(path)


def test_file_of_labels_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(
        b"\xef\xbb\xbf" + _HEADER.replace(b"\n", b"\r\n") + b"en\tPOSITIVE\tLEAD\tx\r\n"
    )
    assert [post.text for post in read_labelled(path)] == ["x"]
