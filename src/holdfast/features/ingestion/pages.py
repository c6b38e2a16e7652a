"""Ingestion: places where files arrive, and what became of the files."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.errors import UserError
from holdfast.features.ingestion.adapter_scans import ScanReport, scan_named, watch
from holdfast.features.ingestion.adapters import AdapterKind, NewAdapter
from holdfast.features.ingestion.shapes import arrived_files
from holdfast.server.context import Visitor
from holdfast.server.forms import AdminPost, OperatorPost, fields, parse_options

router = APIRouter(prefix="/ingestion")

_SHOWN_FILES = 20
_LONGEST_ADDRESS = 1000
_LONGEST_MARKER = 50


@router.get("")
async def index(visit: Visitor) -> Response:
    adapters = await visit.parts.console.adapters.all(visit.person.scope)
    files = {
        adapter.name: await arrived_files(adapter.name, visit.person, visit.parts, _SHOWN_FILES)
        for adapter in adapters
    }
    return await visit.page(
        "ingestion.html",
        here="ingestion",
        adapters=adapters,
        files=files,
        pipelines=visit.parts.new_jobs.startable,
        kinds=list(AdapterKind),
    )


@router.post("")
async def put(visit: AdminPost) -> Response:
    form = await fields(visit.request)
    kind = form.get("kind", "")
    if kind not in set(AdapterKind):
        raise UserError(f"there is no kind {kind!r}", f"Kinds: {', '.join(AdapterKind)}.")
    name = form.get("name", "").strip()
    new = NewAdapter(
        name,
        AdapterKind(kind),
        form.get("address", "").strip()[:_LONGEST_ADDRESS],
        form.get("pipeline", ""),
        visit.person.name,
        parse_options(form.get("options", "")),
        form.get("marker", "").strip()[:_LONGEST_MARKER],
    )
    await watch(visit.parts.console, visit.parts.new_jobs, new, visit.person.name)
    return visit.go("/ingestion", f"{name} is being watched.")


@router.post("/scan")
async def scan(visit: OperatorPost) -> Response:
    name = (await fields(visit.request)).get("name")
    reports = await scan_named(visit.parts.scans, [name] if name else [], visit.person.scope)
    return visit.go("/ingestion", " ".join(map(_sentence, reports)) or "There is nothing to scan.")


@router.post("/remove")
async def remove(visit: AdminPost) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await visit.parts.console.adapters.remove_adapter(name, visit.person.name)
    return visit.go("/ingestion", f"{name} removed; its jobs remain.")


def _sentence(scan: ScanReport) -> str:
    if scan.busy:
        return f"{scan.adapter}: another process is scanning it."
    if scan.error:
        return f"{scan.adapter}: {scan.error}."
    jobs, rest = len(scan.taken), f"{scan.waiting} waiting, {scan.refused} refused"
    return f"{scan.adapter}: {jobs} new {'job' if jobs == 1 else 'jobs'}, {rest}."
