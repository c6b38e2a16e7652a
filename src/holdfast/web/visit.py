"""One person's request for a page: who asks, what is there, and how it is answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, PrefixLoader
from starlette.datastructures import FormData

from holdfast import __version__
from holdfast.api.dependencies import Parts
from holdfast.api.flags import Flag, is_on
from holdfast.api.identity import CSRF_HEADER, Person, check_csrf, csrf_token, find_person, parts_of
from holdfast.api.problems import Malformed
from holdfast.errors import NotAllowed
from holdfast.web.filtering import column_word
from holdfast.web.formatting import FILTERS, GLOBALS, TESTS
from holdfast.web.navigation import Entry, PagePack, rail

_NOTE_COOKIE = "holdfast_note"
_NOTE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Note:
    """What happened, told on the next page; `undo` is where a form takes it back."""

    text: str
    undo: str | None = None


class Site:
    """What all pages share."""

    def __init__(self, packs: Sequence[PagePack]) -> None:
        self.entries: tuple[Entry, ...] = rail(packs)
        self.stream_pages = {pack.name: pack.streams for pack in packs if pack.streams}
        own = PackageLoader("holdfast.web", "templates")
        added = {pack.name: FileSystemLoader(pack.templates) for pack in packs}
        self.templates = Environment(
            loader=ChoiceLoader([own, PrefixLoader(added)]),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(FILTERS, column_word=column_word)
        self.templates.tests.update(TESTS)
        self.templates.globals.update(GLOBALS, version=__version__, stream_pages=self.stream_pages)

    def render(self, template: str, context: Mapping[str, Any]) -> str:
        return self.templates.get_template(template).render(context)


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


@dataclass(frozen=True, slots=True)
class Visit:
    request: Request
    person: Person
    parts: Parts

    @property
    def is_partial(self) -> bool:
        """Whether htmx asks, for a part of the page."""
        return self.request.headers.get("HX-Request") == "true"

    @property
    def csrf(self) -> str:
        return csrf_token(self.parts, self.person.session) if self.person.session else ""

    async def page(self, template: str, **context: Any) -> Response:
        """A whole page, with what the rail shows."""
        note = read_note(self.request)
        pending = await is_on(self.parts, Flag.PENDING)
        told = {
            "entries": [e for e in site_of(self.request).entries if pending or e.name != "pending"],
            "note": note,
            "wide": False,
            **context,
        }
        response = self.part(template, **told)
        if note is not None:
            response.delete_cookie(_NOTE_COOKIE)
        return response

    def part(self, template: str, **context: Any) -> Response:
        """A piece of a page, for htmx."""
        told = {"visit": self, "person": self.person, "csrf": self.csrf, **context}
        text = site_of(self.request).render(template, told)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})

    def go(self, path: str, note: str | None = None, undo: str | None = None) -> Response:
        """On to another page, after something was done."""
        if self.is_partial:
            response = Response(status_code=204, headers={"HX-Redirect": path})
        else:
            response = RedirectResponse(path, 303)
        if note is not None:
            _write_note(response, self.parts, Note(note, undo))
        return response


def _serializer(parts: Parts) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(
        parts.secret, salt="note", signer_kwargs={"digest_method": hashlib.sha256}
    )


def _write_note(response: Response, parts: Parts, note: Note) -> None:
    value = _serializer(parts).dumps([note.text, note.undo])
    response.set_cookie(
        _NOTE_COOKIE, str(value), max_age=_NOTE_SECONDS, httponly=True, samesite="lax"
    )


def read_note(request: Request) -> Note | None:
    value = request.cookies.get(_NOTE_COOKIE)
    if value is None:
        return None
    try:
        text, undo = _serializer(parts_of(request)).loads(value, max_age=_NOTE_SECONDS)
    except BadSignature:
        return None
    return Note(text, undo)


async def visitor(request: Request) -> Visit:
    """Anybody who is logged in."""
    person = await find_person(request)
    if person is None:
        raise NotAllowed("log in first", "Your session may have ended.", log_in=True)
    return Visit(request, person, parts_of(request))


async def changing(visit: Annotated[Visit, Depends(visitor)]) -> Visit:
    """Somebody who asks for a change, from one of our own pages."""
    if not visit.person.may_change:
        raise NotAllowed(f"{visit.person.name} may look, but change nothing", "Ask an admin.")
    await _check_form(visit)
    return visit


async def posting(visit: Annotated[Visit, Depends(visitor)]) -> Visit:
    """Somebody who changes what is their own, whatever their role."""
    await _check_form(visit)
    return visit


async def governing(visit: Annotated[Visit, Depends(visitor)]) -> Visit:
    if not visit.person.is_admin:
        raise NotAllowed("only an admin may do this", "Ask an admin.")
    await _check_form(visit)
    return visit


async def _check_form(visit: Visit) -> None:
    given = visit.request.headers.get(CSRF_HEADER) or (await fields(visit.request)).get("csrf", "")
    check_csrf(visit.parts, visit.person, given)


async def fields(request: Request) -> dict[str, str]:
    """The fields of the posted form."""
    form = await _form(request)
    return {name: value for name, value in form.items() if isinstance(value, str)}


async def values_of(request: Request, name: str) -> list[str]:
    """All that the posted form says under one name."""
    return [value for value in (await _form(request)).getlist(name) if isinstance(value, str)]


async def _form(request: Request) -> FormData:
    """As in an address, a NUL is nothing that anybody means or a database takes."""
    form = await request.form()
    await form.close()  # files that a form of ours never has
    if any("\0" in text for pair in form.multi_items() for text in pair if isinstance(text, str)):
        raise Malformed("the form has a NUL character in it")
    return form


def login_path(request: Request) -> str:
    """Where to log in, and come back from."""
    asked = request.headers.get("HX-Current-URL", "") if _is_part(request) else ""
    path = request.url.path if request.method == "GET" and not asked else "/"
    query = f"?{request.url.query}" if request.url.query and path != "/" else ""
    return f"/login?next={quote(path + query, safe='/')}" if path != "/" else "/login"


def _is_part(request: Request) -> bool:
    return request.headers.get("HX-Request") == "true"


Visitor = Annotated[Visit, Depends(visitor)]
Changing = Annotated[Visit, Depends(changing)]
Posting = Annotated[Visit, Depends(posting)]
Governing = Annotated[Visit, Depends(governing)]
