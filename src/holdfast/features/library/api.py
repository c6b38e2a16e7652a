"""Stored files: uploaded once, stored by content, previewed before anything is done with them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from holdfast.errors import NotThere
from holdfast.features.accounts.person import Person
from holdfast.features.library.file_library import HEADER_ROW, TABLE_OPTIONS, Preview, table_options
from holdfast.features.library.files import StoredFile
from holdfast.features.library.images import is_image
from holdfast.features.library.uploads import FILE_FIELDS
from holdfast.features.switches.flag_needed import require_flag
from holdfast.features.switches.flags import Flag
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.downloads import Download, download_response
from holdfast.server.idempotency import IdempotentRoute, request_key
from holdfast.server.identity import Operator, PartsOf, Someone, parts_of
from holdfast.server.multipart import received_form, require_file
from holdfast.server.problems import WrongType
from holdfast.server.shapes import Id, Shape
from holdfast.sources.images import MEDIA_TYPES


class _FileRoute(IdempotentRoute):
    async def describe(self, request: Request, person: Person, made: int) -> str:
        parts = parts_of(request)
        file = await parts.console.files.file(made)
        detected = file.detected
        table = {name: detected[name] for name in TABLE_OPTIONS if detected.get(name) is not None}
        return (await _previewed(file, table, parts)).model_dump_json(by_alias=True)


router = APIRouter(prefix="/api/files", tags=["files"], route_class=_FileRoute)

FILE_FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {"type": "object", "required": ["file"], "properties": FILE_FIELDS}
            }
        },
    }
}


class FileShape(Shape):
    id: int = Field(examples=[3])
    owner_id: str = Field(examples=["ada"])
    name: str = Field(examples=["products.csv"])
    kind: str = Field(description="`upload`, `import` from a folder or bucket, or `images`.")
    size: int
    sha256: str
    detected: dict[str, Any] = Field(
        description="Format, encoding, delimiter, sheet, columns and notes for people; for an "
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
    summary="Store a file and preview it",
    openapi_extra=FILE_FORM,
    dependencies=[Depends(require_flag(Flag.INGEST))],
)
async def store(request: Request, person: Operator, parts: PartsOf) -> PreviewedFile:
    """The content decides what it is: CSV, TSV, XLSX or JSON lines, or an image (PNG, JPEG, WebP,
    GIF, HEIC). Anything else is refused and not stored."""
    require_form(request)
    async with received_form(request, parts.library.access) as form:
        table = table_options(form.fields)
        file, preview = await parts.library.store(
            require_file(form), table, person.name, request_key(request)
        )
    return _shape(file, preview)


@router.get("", summary="List the stored files")
async def index(
    person: Someone,
    parts: PartsOf,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=200)] = 50,
    after: str | None = None,
) -> FileList:
    cursors = Cursors(parts.secret, "files", person.name, {})
    files = await parts.console.files.page(person.scope, page_size + 1, cursors.read(after))
    more = cursors.write(files[page_size - 1].id) if len(files) > page_size else None
    shapes = [FileShape.model_validate(file) for file in files[:page_size]]
    return FileList(files=shapes, next=more)


@router.get("/{file_id}", summary="Show a stored file with its first rows")
async def show(
    file_id: Id,
    person: Someone,
    parts: PartsOf,
    encoding: Annotated[str | None, Query(max_length=40)] = None,
    delimiter: Annotated[str | None, Query(max_length=10)] = None,
    sheet: Annotated[str | None, Query(max_length=100)] = None,
    header_row: Annotated[
        int | None, Query(alias="headerRow", ge=0, le=1_000_000, description=HEADER_ROW)
    ] = None,
) -> PreviewedFile:
    """Send encoding, delimiter or sheet to see the file read with them."""
    file = await parts.console.files.file(file_id, person.scope)
    table = {
        "encoding": encoding,
        "delimiter": delimiter,
        "sheet": sheet,
        "header_row": header_row,
    }
    given = {name: value for name, value in table.items() if value not in (None, "")}
    return await _previewed(file, given, parts)


@router.get(
    "/{image_id}/image",
    summary="Download a stored image",
    response_class=StreamingResponse,
    responses={200: {"content": {name: {} for name in MEDIA_TYPES}}},
)
async def image(image_id: Id, request: Request, person: Someone, parts: PartsOf) -> Response:
    file = await parts.console.files.file(image_id, person.scope)
    if not is_image(file):
        raise NotThere(f"file {image_id} is not an image", "GET /api/files lists the files.")
    download = Download(
        file.key,
        file.size,
        file.sha256,
        file.detected["media_type"],
        cache="private, max-age=86400, immutable",  # a stored file never changes
    )
    return await download_response(parts.library.access.store, download, request)


def require_form(request: Request) -> None:
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise WrongType(
            "the body is not a form", "Send multipart/form-data with the file as `file`."
        )


async def _previewed(file: StoredFile, table: Mapping[str, Any], parts: Parts) -> PreviewedFile:
    return _shape(file, await parts.library.preview(file, table))


def _shape(file: StoredFile, preview: Preview) -> PreviewedFile:
    fields = FileShape.model_validate(file).model_dump() | {"detected": preview.detected}
    return PreviewedFile(**fields, rows=preview.rows)
