"""Every request in the README and the docs is sent to a running server, which carries it out.

Where a documented path names a job, a file or a person, there is one: `World` makes it, and its
number stands in for the documented one.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.api.server import ApiServer
from tests.docs.documented_requests import Documented, documented_requests

REQUESTS = documented_requests()
#: Executed where what they need is, and why not here.
ELSEWHERE = {
    # needs a bucket
    ("docs/how-to/keep-files-in-a-bucket.md", "POST", "/api/jobs"):
        "tests/api/test_bucket_imports.py",
    # a route of the extension that the page builds
    ("docs/how-to/write-an-extension.md", "GET", "/api/weather/stations"):
        "tests/extension/test_installed.py",
}  # fmt: skip
PRICES = """
from holdfast import Pipeline
from holdfast.errors import ItemError
from holdfast.model import Page, Record


class Prices(Pipeline):
    name = "prices"
    columns = ("brand", "price")

    def sources(self, options):
        return ("shop",)

    async def discover(self, source, cursor, ctx):
        yield Page([Record({"brand": "acme"})], end=True)

    async def process(self, row, ctx):
        if row["brand"] == "broken":
            raise ItemError("TIMEOUT", "no answer")
        return {"brand": row["brand"], "price": 7}


class Orders(Pipeline):
    name = "orders"

    async def process(self, row, ctx):
        return row
"""
FILES = {
    "orders.csv": b"id,brand\n1,acme\n2,other\n",
    "products.csv": b"brand\nacme\nother\nbroken\n",
    "orders.jsonl": b'{"id": 1, "brand": "acme"}\n{"id": 2, "brand": "other"}\n',
}
METRICS_TOKEN, SECRET = "token-of-prometheus", "secret-of-the-site"
#: What sentences leave out.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/api/session"): {"name": "eve", "password": "seventeen quiet lighthouses"},
    ("POST", "/api/jobs"): {"pipeline": "prices", "fileId": 3},
    ("POST", "/api/operations"): {"kind": "cancel", "filter": {"jobIds": [12]}},
    ("POST", "/api/ingestion/scan"): {"name": "suppliers"},
    ("PUT", "/api/flags/{name}"): {"value": True},
}


class World:
    """A server with everything that the docs speak of."""

    def __init__(self, server: ApiServer, root: httpx2.AsyncClient, token: str) -> None:
        self.server = server
        self.root = root
        self._words = {
            "$HOLDFAST_METRICS_TOKEN": METRICS_TOKEN,
            "$HOLDFAST_MEETINGS_WEBHOOK_SECRET": SECRET,
            "$TOKEN": token,
            "hf_…": token,
            "TOKEN": token,
        }
        self._job: int | None = None

    async def job(self) -> int:
        """Done, with an item that failed."""
        if self._job is None:
            self._job = await self.job_without_decisions()
        return self._job

    async def job_without_decisions(self) -> int:
        job_id = await self.new_job()
        await self.server.work(job_id)
        return job_id

    async def new_job(self) -> int:
        upload = {"file": ("products.csv", FILES["products.csv"])}
        made = await self.root.post("/api/jobs", files=upload, data={"pipeline": "prices"})
        path = f"/api/jobs/{made.json()['id']}"
        while not (job := (await self.root.get(path)).json())["discoveredAt"]:
            await asyncio.sleep(0.02)
        return int(job["id"])

    async def standing_job(self) -> int:
        body = {"pipeline": "orders", "standing": True}
        return int((await self.root.post("/api/jobs", json=body)).json()["id"])

    async def file(self) -> int:
        made = await self.root.post("/api/files", files={"file": ("a.csv", b"brand\nacme\n")})
        return int(made.json()["id"])

    async def export(self) -> int:
        made = await self.root.post(f"/api/jobs/{await self.job()}/export?format=csv")
        path = f"/api/exports/{made.json()['id']}"
        while (await self.root.get(path)).json()["state"] != "DONE":
            await asyncio.sleep(0.02)
        return int(made.json()["id"])

    async def operation(self) -> int:
        body = {"kind": "cancel", "filter": {"jobIds": [await self.new_job()]}}
        made = await self.root.post("/api/operations", json=body)
        return int(made.json()["id"])

    async def project(self) -> int:
        name = f"people {len((await self.root.get('/api/projects')).json()['projects'])}"
        made = await self.root.post("/api/projects", json={"name": name})
        assert made.is_success, made.text
        return int(made.json()["id"])

    async def project_with_token(self) -> str:
        project = await self.project()
        made = await self.root.post(f"/api/projects/{project}/tokens", json={"days": 1})
        return f"{project}/tokens/{made.json()['id']}"

    async def stream(self) -> int:
        made = await self.root.post("/api/jobs", json={"pipeline": "prices"})
        await self.server.work(made.json()["id"])
        (stream, *_) = (await self.root.get("/api/streams")).json()["streams"]
        return int(stream["id"])

    async def municipality(self) -> str:
        body = {"subdomain": "oakland.ca", "name": "Oakland"}
        made = await self.root.post("/api/meetings/municipalities", json=body)
        assert made.is_success, made.text
        return "oakland.ca"

    async def person(self) -> str:
        await self.server.parts.accounts.add_user("ada", "operator", None, "root")
        return "ada"

    async def flag(self) -> str:
        return "pending"

    async def placed(self, request: Documented) -> str:
        """The target, with what there is in place of the documented numbers."""
        for method, pattern, make in PLACES:
            match = re.search(pattern, request.target)
            if match and method in ("", request.method):
                made = await make(self)
                return f"{request.target[: match.start(1)]}{made}{request.target[match.end(1) :]}"
        return request.target

    def header(self, value: str) -> str:
        for word, meant in self._words.items():
            if value.endswith(word):
                return value.removesuffix(word) + meant
        return value


_Make = Callable[[World], Awaitable[int | str]]
PLACES: list[tuple[str, str, _Make]] = [
    ("DELETE", r"^/api/jobs/(\d+)$", World.new_job),
    ("POST", r"^/api/jobs/(\d+)/(?:items|files)", World.standing_job),
    ("PUT", r"^/api/jobs/(\d+)/items/3/ruling", World.job_without_decisions),
    ("", r"^/api/jobs/(\d+)", World.job),
    ("", r"^/api/files/(\d+)", World.file),
    ("", r"^/api/exports/(\d+)", World.export),
    ("", r"^/api/operations/(\d+)", World.operation),
    ("", r"^/api/projects/({project_id}/tokens/{token_id})", World.project_with_token),
    ("", r"^/api/projects/(\d+)", World.project),
    ("", r"^/api/streams/({id})", World.stream),
    ("", r"^/api/meetings/municipalities/({subdomain})", World.municipality),
    ("", r"^/api/users/(ada)", World.person),
    ("", r"^/api/flags/({name})", World.flag),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(
    migrated_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("requests")
    shutil.copyfile(migrated_file, folder / "holdfast.db")
    url = f"sqlite:///{folder / 'holdfast.db'}"
    (folder / "prices.py").write_text(PRICES)
    references = [str(folder / "prices.py"), "linker", "meetings"]
    settings = {
        "file_roots": str(folder),
        "metrics_token": METRICS_TOKEN,
        "meetings_webhook_secret": SECRET,
        "linker_contact": "docs@example.org",
    }
    async with ApiServer(url, folder, references=references, **settings) as server:
        root = await server.signed_in("root", "admin")
        accounts = server.parts.accounts
        await accounts.add_user("eve", "operator", "seventeen quiet lighthouses", "root")
        token = await accounts.make_token("root", "docs", None, "root")
        await _watch_a_folder(root, folder)
        yield World(server, root, token.value)


async def _watch_a_folder(root: httpx2.AsyncClient, folder: Path) -> None:
    (folder / "suppliers").mkdir()
    body = {"kind": "folder", "pipeline": "prices", "address": str(folder / "suppliers")}
    made = await root.put("/api/ingestion/suppliers", json=body)
    assert made.is_success, made.text


def test_there_are_documented_requests_of_every_kind() -> None:
    assert len(REQUESTS) > 20
    assert {request.method for request in REQUESTS} >= {"GET", "POST", "PUT", "DELETE"}
    assert any(request.form for request in REQUESTS)
    known = {(request.page, request.method, request.target) for request in REQUESTS}
    assert set(ELSEWHERE) <= known


@pytest.mark.parametrize(
    "request_",
    [each for each in REQUESTS if (each.page, each.method, each.target) not in ELSEWHERE],
    ids=str,
)
@pytest.mark.asyncio(loop_scope="module")
async def test_documented_request_is_carried_out(world: World, request_: Documented) -> None:
    target = await world.placed(request_)
    by_itself = request_.headers or request_.target == "/api/session"
    client = world.server.anybody() if by_itself else world.root
    headers = {name: world.header(value) for name, value in request_.headers}
    content = await _content(world, request_)
    async with client.stream(request_.method, target, headers=headers, **content) as reply:
        if reply.status_code >= 300:
            await reply.aread()
            pytest.fail(f"{request_}: {reply.status_code} {reply.text}")


async def _content(world: World, request: Documented) -> dict[str, Any]:
    """As `curl` would send it; numbers in a body are those of the world."""
    if request.form:
        files = {k: (v[1:], FILES[v[1:]]) for k, v in request.form if v.startswith("@")}
        return {"files": files, "data": {k: v for k, v in request.form if not v.startswith("@")}}
    if request.body and request.body.startswith("@"):
        return {"content": FILES[request.body[1:]]}
    if (request.method, request.target) == ("POST", "/api/files"):
        return {"files": {"file": ("products.csv", FILES["products.csv"])}}
    body = json.loads(request.body) if request.body else None
    body = body or BODIES.get((request.method, request.target))
    if body is None:
        return {}
    if "fileId" in body:
        body = {**body, "fileId": await world.file()}
    if "filter" in body:
        body = {**body, "filter": {**body["filter"], "jobIds": [await world.job()]}}
    return {"json": body}
