"""Ingestion: places where files arrive, and what became of the files."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.errors import UserError
from holdfast.features.ingestion import api
from holdfast.features.ingestion.adapters import AdapterKind
from holdfast.features.ingestion.api import AdapterBody, ScanBody
from holdfast.server.context import Visitor
from holdfast.server.forms import AdminPost, OperatorPost, fields, parse_options

router = APIRouter(prefix="/ingestion")

_SHOWN_FILES = 20


@router.get("")
async def index(visit: Visitor) -> Response:
    adapters = (await api.index(visit.person, visit.parts)).adapters
    files = {
        adapter.name: (await api.files(adapter.name, visit.person, visit.parts, _SHOWN_FILES)).files
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
    body = AdapterBody(
        kind=AdapterKind(kind),
        address=form.get("address", "").strip()[:1000],
        pipeline=form.get("pipeline", ""),
        options=parse_options(form.get("options", "")),
        marker=form.get("marker", "").strip()[:50],
    )
    name = form.get("name", "").strip()
    await api.put(name, body, visit.person, visit.parts)
    return visit.go("/ingestion", f"{name} is being watched.")


@router.post("/scan")
async def scan(visit: OperatorPost) -> Response:
    name = (await fields(visit.request)).get("name") or None
    scans = (await api.scan(visit.person, visit.parts, ScanBody(name=name))).scans
    return visit.go("/ingestion", " ".join(map(_sentence, scans)) or "There is nothing to scan.")


@router.post("/remove")
async def remove(visit: AdminPost) -> Response:
    name = (await fields(visit.request)).get("name", "")
    await api.remove(name, visit.person, visit.parts)
    return visit.go("/ingestion", f"{name} removed; its jobs remain.")


def _sentence(scan: api.ScanResult) -> str:
    if scan.busy:
        return f"{scan.adapter}: another process is scanning it."
    if scan.error:
        return f"{scan.adapter}: {scan.error}."
    jobs, rest = len(scan.taken), f"{scan.waiting} waiting, {scan.refused} refused"
    return f"{scan.adapter}: {jobs} new {'job' if jobs == 1 else 'jobs'}, {rest}."
