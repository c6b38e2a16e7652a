"""Stored uploads: kept once by their content, looked into before anything is done with them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse
from pydantic import Field

from holdfast.api.cursors import Cursors
from holdfast.api.dependencies import Parts
from holdfast.api.flags import Flag, require_flag
from holdfast.api.idempotency import AnsweredOnce, request_key
from holdfast.api.identity import Operator, PartsOf, Person, Someone, parts_of
from holdfast.api.images import detected_image, is_image, row_of
from holdfast.api.multipart import Received, received_form, the_file
from holdfast.api.problems import WrongType
from holdfast.api.shapes import Id, Shape
from holdfast.console.files import NewFile, StoredFile
from holdfast.errors import InputError, NotAllowed, NotThere
from holdfast.sources.images import MEDIA_TYPES, image_in
from holdfast.store.idempotency import RequestKey
from holdfast.tables.files import content_key, open_table
from holdfast.tables.threads import look


class _StoredOnce(AnsweredOnce):
    async def retell(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        file = await parts.console.files.file(made)
        table = {name: file.detected[name] for name in TABLE_OPTIONS if file.detected.get(name)}
        return (await _previewed(file, table, parts)).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/files", tags=["files"], route_class=_StoredOnce)

_PREVIEW_ROWS = 20
#: The kind of a stored file that stays where the server's owner keeps it.
REFERENCE = "reference"
TABLE_OPTIONS = ("encoding", "delimiter", "sheet")
FILE_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "encoding": {"type": "string"},
                        "delimiter": {"type": "string"},
                        "sheet": {"type": "string"},
                    },
                }
            }
        },
    }
}


class FileShape(Shape):
    id: int = Field(examples=[3])
    owner_id: str = Field(examples=["ada"])
    name: str = Field(examples=["products.csv"])
    kind: str = Field(description="`upload`, or `reference` to a file of the server's.")
    size: int
    sha256: str
    detected: dict[str, Any] = Field(
        description="Format, encoding, delimiter, sheet, columns, and notes for people; of an "
        "image, its media type, width and height."
    )
    created_at: datetime | None


class PreviewedFile(FileShape):
    rows: list[dict[str, Any]] = Field(description="The first rows.")


class FileList(Shape):
    files: list[FileShape]
    next: str | None


@router.post(
    "",
    status_code=201,
    summary="Store a file and look into it",
    openapi_extra=FILE_FORM,
    dependencies=[Depends(require_flag(Flag.INGEST))],
)
async def store(request: Request, person: Operator, parts: PartsOf) -> PreviewedFile:
    """CSV, TSV, XLSX or JSON lines, or an image (PNG, JPEG, WebP, GIF), told by content. What is
    neither is refused and not kept."""
    require_form(request)
    limit = parts.options.max_upload_bytes
    async with received_form(request, parts.files, limit) as form:
        table = {name: form.fields[name] for name in TABLE_OPTIONS if form.fields.get(name)}
        file = await keep(the_file(form), table, person, parts, request_key(request))
    return await _previewed(file, table, parts)


@router.get("", summary="List the stored files")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> FileList:
    cursors = Cursors(parts.secret, "files", person.name, {})
    found = await parts.console.files.page(person.scope, page_size + 1, cursors.read(after))
    more = cursors.write(found[page_size - 1].id) if len(found) > page_size else None
    return FileList(files=[_shape(file) for file in found[:page_size]], next=more)


@router.get("/{file_id}", summary="Show a stored file with its first rows")
async def show(
    file_id: Id,
    person: Someone,
    parts: PartsOf,
    encoding: Annotated[str | None, Query(max_length=40)] = None,
    delimiter: Annotated[str | None, Query(max_length=10)] = None,
    sheet: Annotated[str | None, Query(max_length=100)] = None,
) -> PreviewedFile:
    """Give encoding, delimiter or sheet to see how the file reads with them."""
    file = await parts.console.files.file(file_id, person.scope)
    given = {"encoding": encoding, "delimiter": delimiter, "sheet": sheet}
    return await _previewed(file, {name: value for name, value in given.items() if value}, parts)


@router.get(
    "/{image_id}/image",
    summary="The bytes of a stored image",
    response_class=FileResponse,
    responses={200: {"content": {name: {} for name in MEDIA_TYPES}}},
)
async def image(image_id: Id, person: Someone, parts: PartsOf) -> FileResponse:
    file = await parts.console.files.file(image_id, person.scope)
    if not is_image(file) or not await asyncio.to_thread(Path(file.path).is_file):
        raise NotThere(f"file {image_id} is no image", "GET /api/files tells what the files are.")
    # It stays the same for ever: a file is stored by its content.
    headers = {"Cache-Control": "private, max-age=86400, immutable"}
    return FileResponse(file.path, media_type=file.detected["media_type"], headers=headers)


def require_form(request: Request) -> None:
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise WrongType(
            "the body is not a form", "Send multipart/form-data with the file as `file`."
        )


async def keep(
    received: Received,
    table: Mapping[str, str],
    person: Person,
    parts: Parts,
    key: RequestKey | None = None,
) -> StoredFile:
    """Stores the upload for good once it turned out to be an image, or a table with rows."""
    named = received.path.with_name(received.name)
    received.path.rename(named)
    detected = await look(_image_or_table, named, table, parts)
    await parts.console.quotas.require(person.name, files=1, bytes=received.size)
    moved = Received(received.name, named, received.size, received.sha256)
    place = await asyncio.to_thread(moved.keep, parts.files)
    new = _new_file(person, "upload", place, received.size, received.sha256, detected)
    return await _record(replace(new, request=key), parts)


def _image_or_table(path: Path, table: Mapping[str, str], parts: Parts) -> dict[str, Any]:
    image = image_in(path)
    if image is not None:
        return detected_image(image)
    detected, rows = _look_into(path, table, parts)
    if not rows:
        raise InputError(f"{path.name} has a header and no rows", "Send a file with rows.")
    return detected


async def refer(path: str, table: Mapping[str, str], person: Person, parts: Parts) -> StoredFile:
    """A file of the server's own, under one of the configured roots; it stays where it is."""
    place = await asyncio.to_thread(_under_a_root, path, parts.options.file_roots)
    detected, rows = await look(_look_into, place, table, parts)
    if not rows:
        raise InputError(f"{place.name} has a header and no rows", "Name a file with rows.")
    sha256 = await look(content_key, place)
    size = place.stat().st_size
    return await _record(_new_file(person, REFERENCE, place, size, sha256, detected), parts)


def _under_a_root(path: str, roots: tuple[Path, ...]) -> Path:
    """Links are followed before it is judged where they lead."""
    refused = NotAllowed(
        f"{path!r} is not a file under the folders that are open to the API",
        "HOLDFAST_FILE_ROOTS names them.",
    )
    if "\0" in path:
        raise refused
    for root in roots:
        # A name that is too long, a link in a circle, a folder that is not ours to look into.
        with suppress(OSError, RuntimeError):
            place = (root / path).resolve()
            if place.is_relative_to(root.resolve()) and place.is_file():
                return place
    raise refused


async def require_in_place(file: StoredFile, parts: Parts) -> None:
    """A file that is not ours may have become a link to elsewhere since it was referred to, and
    its folder may not be open any more."""
    if file.kind == REFERENCE:
        place = await asyncio.to_thread(_under_a_root, file.path, parts.options.file_roots)
        if str(place) != file.path:
            raise NotAllowed(f"{file.name} leads elsewhere now", "Refer to it anew.")


def _new_file(
    person: Person, kind: str, place: Path, size: int, sha256: str, detected: dict[str, Any]
) -> NewFile:
    return NewFile(person.name, place.name, kind, str(place.resolve()), size, sha256, detected)


async def _record(new: NewFile, parts: Parts) -> StoredFile:
    return await parts.console.files.file(await parts.console.files.add_file(new))


def table_limits(parts: Parts) -> dict[str, int]:
    options = parts.options
    return {
        "max_cell_bytes": options.max_input_bytes,
        "max_row_bytes": options.max_input_bytes,
        "max_workbook_bytes": options.max_workbook_bytes,
    }


def _look_into(
    path: Path, table: Mapping[str, Any], parts: Parts
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with open_table(path, {**table, **table_limits(parts)}) as file:
        batch = next(file.pages(0, lambda: _PREVIEW_ROWS, 1 << 20))
        rows = [orjson.loads(text) for text in islice(batch.inputs, _PREVIEW_ROWS)]
        return asdict(file.detected), rows


async def looked_into(
    path: Path, table: Mapping[str, Any], parts: Parts
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What was detected, and the first rows."""
    return await look(_look_into, path, table, parts)


async def require_readable(file: StoredFile, table: Mapping[str, Any], parts: Parts) -> None:
    """Opens the file as a job would: who asks for the job learns at once what is wrong with it.
    Without options, that was done when the file came."""
    if table and not is_image(file):
        await looked_into(Path(file.path), table, parts)


async def _previewed(file: StoredFile, table: Mapping[str, str], parts: Parts) -> PreviewedFile:
    if is_image(file):
        return PreviewedFile(**_shape(file).model_dump(), rows=[row_of(file)])
    await require_in_place(file, parts)
    detected, rows = await look(_look_into, Path(file.path), table, parts)
    shape = _shape(file).model_dump() | {"detected": detected}
    return PreviewedFile(**shape, rows=rows)


def _shape(file: StoredFile) -> FileShape:
    return FileShape(
        id=file.id,
        owner_id=file.owner_id,
        name=file.name,
        kind=file.kind,
        size=file.size,
        sha256=file.sha256,
        detected=dict(file.detected),
        created_at=file.created_at,
    )
