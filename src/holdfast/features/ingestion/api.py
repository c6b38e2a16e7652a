"""Ingestion: adapters that take files from folders, FTP servers and buckets."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field

from holdfast.features.ingestion.adapter_scans import scan_named, watch
from holdfast.features.ingestion.adapters import AdapterKind, NewAdapter
from holdfast.features.ingestion.shapes import (
    AdapterShape,
    ArrivedFile,
    adapter_shape,
    arrived_files,
)
from holdfast.server.identity import Admin, Operator, PartsOf, Someone
from holdfast.server.shapes import Name, Shape, Text

router = APIRouter(prefix="/api/ingestion", tags=["ingestion"])

AdapterName = Annotated[Name, Path(examples=["incoming"])]


class AdapterList(Shape):
    adapters: list[AdapterShape]


class AdapterBody(Shape):
    kind: AdapterKind
    address: Annotated[Text, Field(max_length=1000)] = Field(
        examples=["/srv/incoming", "ftps://user@host/folder", "bucket/prefix"]
    )
    pipeline: Name = Field(examples=["prices"])
    owner: Name | None = Field(default=None, description="Owner of its jobs. Default: you.")
    options: dict[str, Any] = Field(default_factory=dict, description="Of its jobs.")
    marker: Annotated[Text, Field(max_length=50)] = Field(
        default="", description="A file is complete once another one with this suffix is there."
    )
    settle_seconds: float = Field(default=5.0, ge=0, le=86_400)
    interval_seconds: float = Field(default=30.0, ge=1, le=86_400)


class ArrivedFiles(Shape):
    files: list[ArrivedFile]


class ScanBody(Shape):
    name: Name | None = Field(default=None, description="Only this adapter. Default: all of yours.")


class ScanResult(Shape):
    adapter: str
    taken: list[int] = Field(description="The jobs that were created.")
    waiting: int = Field(description="Files that may still grow.")
    duplicates: int
    refused: int
    busy: bool = Field(description="Another process scans it now.")
    error: str | None


class ScanResults(Shape):
    scans: list[ScanResult]


@router.get("", summary="List the adapters")
async def index(person: Someone, parts: PartsOf) -> AdapterList:
    adapters = await parts.console.adapters.all(person.scope)
    return AdapterList(adapters=[adapter_shape(adapter) for adapter in adapters])


@router.post("/scan", summary="Scan for files now")
async def scan(person: Operator, parts: PartsOf, body: ScanBody | None = None) -> ScanResults:
    """Complete files become jobs. Adapters are also scanned by themselves, at intervals."""
    names = [] if body is None or body.name is None else [body.name]
    reports = await scan_named(parts.scans, names, person.scope)
    return ScanResults(scans=[ScanResult.model_validate(report) for report in reports])


@router.put("/{name:path}", status_code=204, summary="Set an adapter")
async def put(name: AdapterName, body: AdapterBody, person: Admin, parts: PartsOf) -> None:
    new = NewAdapter(
        name,
        body.kind,
        body.address,
        body.pipeline,
        body.owner or person.name,
        body.options,
        body.marker,
        body.settle_seconds,
        body.interval_seconds,
    )
    await watch(parts.console, parts.new_jobs, new, person.name)


@router.delete("/{name:path}", status_code=204, summary="Remove an adapter")
async def remove(name: AdapterName, person: Admin, parts: PartsOf) -> None:
    """Its jobs stay, and so do the files."""
    await parts.console.adapters.remove_adapter(name, person.name)


@router.get("/{name:path}/files", summary="List the files that arrived, the newest first")
async def files(
    name: AdapterName,
    person: Someone,
    parts: PartsOf,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> ArrivedFiles:
    return ArrivedFiles(files=await arrived_files(name, person, parts, limit))
