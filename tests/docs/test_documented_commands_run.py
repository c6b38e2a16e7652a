"""Every command line in the README and the docs is one that the program accepts, and is executed
in a folder with the files that the page speaks of.

Numbers of jobs, files and ports are those of the test; what runs until it is stopped is stopped.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import typer.core
from PIL import Image
from pillow_heif import register_heif_opener

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.lazy_commands import load_own
from holdfast.extension import installed
from holdfast.features.console import open_console
from holdfast.features.exports.exports import NewExport
from holdfast.kernel import Store, open_store
from tests.chaos.children import Children
from tests.cli.desk import QUICK
from tests.command import HoldfastCommand
from tests.docs.documented_commands import ROOT, Documented, documented_commands
from tests.fleet import broker_settings, forget_queues
from tests.pictures import png
from tests.ports import free_port
from tests.store.message_scenarios import dead

LINES = documented_commands()
_PLACEHOLDER = re.compile(r"[A-Z]+(?:_[A-Z]+)*")


def _program() -> Any:
    group = typer.core.TyperGroup(name="holdfast")
    for name in COMMANDS:
        group.add_command(load_own(name), name)
    for name, extension in installed().items():
        if extension.commands:
            group.add_command(typer.main.get_command(extension.load("commands")), name)
    return group


def test_there_are_documented_commands_of_every_kind() -> None:
    assert len(LINES) > 100
    kinds = {command.words()[0] for command in LINES}
    assert kinds >= {"run", "open", "add", "kill-switch", "up", "work", "schedule", "meetings"}
    assert any(command.page == "README.md" for command in LINES)


#: Of the guide that builds an extension, which is not installed here.
_GUIDE = "tests/extension/test_guide.py"


@pytest.mark.parametrize(
    "documented", [each for each in LINES if "weather" not in each.words()], ids=str
)
def test_documented_command_is_accepted(documented: Documented) -> None:
    words = ["1" if _PLACEHOLDER.fullmatch(word) else word for word in documented.words()]
    command, context = _program(), None
    while hasattr(command, "commands"):
        assert words, f"{documented.line!r} names no command"
        name, *words = words
        assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[name]
    context = command.make_context(name, list(words))
    assert context is not None


#: Executed where the servers are that they speak to, and by which test.
ELSEWHERE = {
    "run weather": _GUIDE,
    "weather list": _GUIDE,
    "up weather": _GUIDE,
    "linker match": "pipelines/linker/tests/test_pipeline.py",
    "linker quickstatements": "pipelines/linker/tests/test_pipeline.py",
    "meetings backfill": "pipelines/meetings/tests/test_reads.py",
    "regulations backfill": "pipelines/regulations/tests/test_processes.py",
}
#: What has to be there first, as a person would make it. The first that fits.
BEFORE: list[tuple[str, list[str]]] = [
    (r"add \d+", ["open orders.py"]),
    (r"pause \d+|cancel \d+", ["run prices.py products.csv --no-work"]),
    (r"resume \d+", ["run prices.py products.csv --no-work", "pause 1"]),
    (r"(items|show|reprocess|delete job) \d+", ["run prices.py products.csv"]),
    (
        r"delete file",
        [
            "ingest add suppliers prices.py {folder}/incoming/suppliers --settle 0",
            "ingest scan --pipeline prices.py",
        ],
    ),
    (r"delete export", ["run prices.py products.csv"]),
    (r"delete user|token create", ["user add ada --role operator --no-password"]),
    (r"schedule remove", ['schedule add nightly meetings.py --cron "30 2 * * *"']),
    (r"migrate down core", [f"migrate down {name} base --yes" for name in sorted(installed())]),
    (r"run catalog products.csv", ["catalog load shop.csv"]),
    (r"meetings export", ["meetings add alameda.ca"]),
]
#: Answers to what a command asks.
ANSWERS = {"delete": "y\n", "user": "seventeen quiet lighthouses\n" * 2, "migrate": "y\n"}
#: Ends with what the page says of the files, where that is not a success.
CODES = {"run prices.py": (0, 3), "run catalog": (0, 3)}
RUNS_ON = ("up", "api", "work", "relay", "timers", "consume")
NEEDS_BROKER = ("relay", "up posts")
PRICES = """
from holdfast import Failed, NotFound, Page, Pipeline, Record


class Prices(Pipeline):
    name = "prices"
    columns = ["title", "price"]

    async def process(self, row, ctx):
        if row["title"] == "broken":
            raise Failed("PARSE_ERROR", "no price")
        return {"title": row["title"], "price": 7}
"""
MEETINGS = """
from holdfast import Page, Pipeline, Record


class Meetings(Pipeline):
    columns = ["id"]

    async def discover(self, source, cursor, ctx):
        yield Page([Record({"id": 1})], end=True)

    async def process(self, row, ctx):
        return row
"""
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
_TABLE = re.compile(r"`(\w+\.csv)` is what .*?\n\n```\n(.*?)^```", re.M | re.S)


def _blocks_of(page: str) -> list[str]:
    return _PYTHON.findall((ROOT / page).read_text())


def _write_files(folder: Path) -> None:
    """Those of the pages, as the pages have them, where they need no other host."""
    (folder / "prices.py").write_text(PRICES)
    (folder / "meetings.py").write_text(MEETINGS)
    (folder / "orders.py").write_text(
        _blocks_of("docs/how-to/add-records-from-an-application.md")[0]
    )
    for block in _blocks_of("docs/tutorial/first-pipeline.md"):
        name = re.findall(r"^def (\w+)", block, re.M)
        if name:
            (folder / f"{name[0]}.py").write_text(block)
    (folder / "products.csv").write_text("title\nchair\nbroken\n")
    (folder / "orders.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    with zipfile.ZipFile(folder / "photos.zip", "w") as archive:
        archive.writestr("kitchen.png", png())
    register_heif_opener()
    for name in ("kitchen.jpg", "garage.heic"):
        Image.new("RGB", (64, 48), "white").save(folder / name)
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "incoming" / "suppliers").mkdir(parents=True)
    (folder / "incoming" / "suppliers" / "march.csv").write_text("title\nchair\n")


class Reader:
    """Somebody who types what the pages say."""

    def __init__(self, command: HoldfastCommand, children: Children, settings: dict[str, str]):
        self._command, self._children = command, children
        self.folder = command.folder
        incoming = str(self.folder / "incoming")
        self.env = {**QUICK, "HOLDFAST_FILE_ROOTS": incoming, **settings}

    def type(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        return self._command.run(*words, env=self.env, stdin=ANSWERS.get(words[0]), timeout=170)

    async def until_stopped(self, words: list[str]) -> int:
        process = self._children.holdfast(words, self._command.environment(self.env))
        while "Ctrl-C" not in process.said() or not await self._is_ready(words):
            assert process.returncode is None, process.said()
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        return process.wait(60)

    async def _is_ready(self, words: list[str]) -> bool:
        """Whether it would handle a signal."""
        if "--port" in words:
            port = words[words.index("--port") + 1]
            try:
                async with httpx2.AsyncClient() as client:
                    return (await client.get(f"http://127.0.0.1:{port}/readyz")).is_success
            except httpx2.TransportError:
                return False
        if words[0] != "work":
            return True
        async with self._store() as store:
            return bool(await store.workers.live())

    @asynccontextmanager
    async def _store(self) -> AsyncIterator[Store]:
        store = await open_store(self._command.database_url)
        try:
            yield store
        finally:
            await store.close()

    async def prepare(self, line: str) -> None:
        commands = next((lines for start, lines in BEFORE if re.match(start, line)), [])
        for before in commands:
            words = Documented("", before.format(folder=self.folder)).words()
            done = self.type(words)
            assert done.returncode in _codes(before), f"{before}: {done.stderr}"
        async with self._store() as store:
            if line.startswith("dead "):
                await store.messages.keep_dead(dead("order 1", payload=b"{}"))
            if line.startswith("delete export"):
                await open_console(store).exports.add_export(
                    NewExport("local", 1, "csv", [], with_input=False)
                )
            if line.startswith("delete file"):
                await store.jobs.cancel(1, "local")

    def placed(self, documented: Documented) -> list[str]:
        """The words, with what there is in place of the documented numbers and paths."""
        words = documented.words()
        if words[0] in ("up", "api"):
            words += ["--port", str(free_port())]
        if "--health-port" in words:
            words[words.index("--health-port") + 1] = str(free_port())
        numbers = {word: "1" for word in words[1:] if word.isdigit() and words[0] in _NUMBERED}
        places = {"PIPELINE": "prices.py", **numbers}
        if "/srv/incoming/suppliers" in words:
            places["/srv/incoming/suppliers"] = str(self.folder / "incoming" / "suppliers")
        return [places.get(word, word) for word in words]


_NUMBERED = ("add", "items", "show", "pause", "resume", "cancel", "reprocess", "delete", "dead")


def _codes(line: str) -> tuple[int, ...]:
    return next((codes for start, codes in CODES.items() if line.startswith(start)), (0,))


def _executed() -> list[Documented]:
    """Each line once. Those of the references have words for what a person fills in."""
    lines = {
        each.line: each
        for each in reversed(LINES)
        if not each.page.endswith(("reference/commands.md", "docs/reference.md"))
        and not any(each.line.startswith(start) for start in ELSEWHERE)
    }
    return sorted(lines.values())


EXECUTED = _executed()


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_url: str, children: Children
) -> Iterator[Reader]:
    settings = {}
    if "broker_url" in request.fixturenames:
        settings = broker_settings(request.getfixturevalue("broker_url"))
    _write_files(tmp_path)
    command = HoldfastCommand(sqlite_url, tmp_path)
    yield Reader(command, children, settings)
    command.close()
    if settings:
        forget_queues(settings)


@pytest.mark.exhaustive(keep=25)
@pytest.mark.parametrize(
    "documented", [each for each in EXECUTED if not each.line.startswith(NEEDS_BROKER)], ids=str
)
async def test_documented_command_does_its_work(reader: Reader, documented: Documented) -> None:
    await _execute(reader, documented)


@pytest.mark.parametrize(
    "documented", [each for each in EXECUTED if each.line.startswith(NEEDS_BROKER)], ids=str
)
async def test_documented_command_does_its_work_with_a_broker(
    broker_url: str, reader: Reader, documented: Documented
) -> None:
    await _execute(reader, documented)


async def _execute(reader: Reader, documented: Documented) -> None:
    for name, text in _TABLE.findall((ROOT / documented.page).read_text()):
        (reader.folder / name).write_text(text)
    await reader.prepare(documented.line)
    reader.env |= dict(setting.split("=", 1) for setting in documented.settings.split())
    words = reader.placed(documented)
    if words[0] in RUNS_ON and "--until-idle" not in words:
        assert await reader.until_stopped(words) == 0
    else:
        done = reader.type(words)
        assert done.returncode in _codes(documented.line), done.stdout + done.stderr


@pytest.mark.parametrize("start", ELSEWHERE)
def test_command_is_executed_elsewhere(start: str) -> None:
    assert any(each.line.startswith(start) for each in LINES)
    text = (ROOT / ELSEWHERE[start]).read_text()
    quoted = ", ".join(f'"{word}"' for word in start.split())
    assert quoted in text or start in text
