"""Files in forms that routes receive, ours and those of extensions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from holdfast.features.accounts.person import Person
from holdfast.features.library.file_library import HEADER_ROW, table_options
from holdfast.features.library.files import StoredFile
from holdfast.features.switches.flags import Flag
from holdfast.server.dependencies import Parts
from holdfast.server.multipart import Form, received_form, require_file

FILE_FIELDS = {
    "file": {"type": "string", "format": "binary"},
    "encoding": {"type": "string"},
    "delimiter": {"type": "string"},
    "sheet": {"type": "string"},
    "headerRow": {"type": "integer", "description": HEADER_ROW},
}


@asynccontextmanager
async def received_file(request: Request, parts: Parts) -> AsyncIterator[Form]:
    """Receives a form with a file, for routes of extensions; `store_received` stores the file."""
    await parts.flags.require(Flag.INGEST)
    async with received_form(request, parts.library.access) as form:
        yield form


async def store_received(form: Form, person: Person, parts: Parts) -> StoredFile:
    received, table = require_file(form), table_options(form.fields)
    return (await parts.library.store(received, table, person.name))[0]
