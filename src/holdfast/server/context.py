"""The context of a page: the site's templates, the visitor, and how a request is answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlsplit, urlunsplit

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature, URLSafeTimedSerializer
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PrefixLoader
from starlette.routing import Match

from holdfast import __version__
from holdfast.errors import NotAllowed
from holdfast.features.accounts.person import Person
from holdfast.features.items.filtering import column_word
from holdfast.features.switches.flags import Flag
from holdfast.server.dependencies import Parts
from holdfast.server.formatting import FILTERS, GLOBALS, TESTS
from holdfast.server.identity import csrf_token, find_person, parts_of
from holdfast.server.navigation import Entry, PagePack, rail

_NOTE_COOKIE = "holdfast_note"
_NOTE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Note:
    """A message for the next page; `undo` is the path of a form that reverts the change."""

    text: str
    undo: str | None = None


#: Those that pages share, and each feature's own.
TEMPLATES = (
    Path(__file__).parent / "templates",
    *sorted(Path(__file__).parents[1].glob("features/*/templates")),
)


class Site:
    """What all pages share."""

    def __init__(self, packs: Sequence[PagePack]) -> None:
        self.entries: tuple[Entry, ...] = rail(packs)
        self.stream_pages = {pack.name: pack.streams for pack in packs if pack.streams}
        self.item_parts = {pack.name: f"{pack.name}/{pack.item}" for pack in packs if pack.item}
        core = FileSystemLoader(TEMPLATES)
        extensions = {pack.name: FileSystemLoader(pack.templates) for pack in packs}
        self.templates = Environment(
            loader=ChoiceLoader([core, PrefixLoader(extensions)]),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters.update(FILTERS, column_word=column_word)
        self.templates.tests.update(TESTS)
        self.templates.globals.update(
            GLOBALS,
            version=__version__,
            stream_pages=self.stream_pages,
            item_parts=self.item_parts,
        )

    def render(self, template: str, context: Mapping[str, Any]) -> str:
        return self.templates.get_template(template).render(context)


def site_of(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


@dataclass(frozen=True, slots=True)
class Visit:
    """One request for a page by a logged-in user."""

    request: Request
    person: Person
    parts: Parts

    @property
    def is_partial(self) -> bool:
        """Whether htmx requests a part of a page."""
        return is_partial(self.request)

    @property
    def csrf(self) -> str:
        return csrf_token(self.parts, self.person.session) if self.person.session else ""

    async def page(self, template: str, **context: Any) -> Response:
        """Returns a complete page with the navigation."""
        note = read_note(self.request)
        entries = list(site_of(self.request).entries)
        if not await self.parts.flags.is_on(Flag.PENDING):
            entries = [entry for entry in entries if entry.name != "pending"]
        response = self.part(template, entries=entries, note=note, **context)
        if note is not None:
            response.delete_cookie(_NOTE_COOKIE)
        return response

    def part(self, template: str, **context: Any) -> Response:
        """Returns a part of a page, for htmx."""
        everywhere = {"visit": self, "person": self.person, "csrf": self.csrf}
        text = site_of(self.request).render(template, everywhere | context)
        return HTMLResponse(text, headers={"Cache-Control": "no-store"})

    async def dialog(self, template: str, **context: Any) -> Response:
        """Returns a dialog, or a separate page for browsers without scripts."""
        if self.is_partial:
            return self.part(template, **context)
        return await self.page("dialog_page.html", dialog=template, **context)

    def go(self, path: str, note: str | None = None, undo: str | None = None) -> Response:
        """Redirects after a change."""
        if self.is_partial:
            response = Response(status_code=204, headers={"HX-Redirect": path})
        else:
            response = RedirectResponse(path, 303)
        if note is not None:
            _write_note(response, self.parts, Note(note, undo))
        return response


def is_partial(request: Request) -> bool:
    return request.headers.get("HX-Request") == "true"


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
    """Returns a visit of any logged-in user."""
    person = await find_person(request)
    if person is None:
        raise NotAllowed("log in first", "Your session may have expired.", log_in=True)
    return Visit(request, person, parts_of(request))


def login_path(request: Request) -> str:
    """Returns the login page, which afterwards returns to the page that the person was on."""
    shown = request.headers.get("HX-Current-URL") if is_partial(request) else None
    if shown is not None:
        address = urlsplit(shown)
        path = urlunsplit(("", "", address.path or "/", address.query, ""))
    elif request.method == "GET":
        path = urlunsplit(("", "", request.url.path, request.url.query, ""))
    else:
        path = _page_above(request)
    return "/login" if path == "/" else f"/login?next={quote(path, safe='/')}"


def _page_above(request: Request) -> str:
    """Returns the page that an action belongs to: /jobs/7 of /jobs/7/pause."""
    path = request.url.path
    while path:
        path = path.rpartition("/")[0]
        scope = {"type": "http", "method": "GET", "path": path or "/", "headers": []}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes):
            return path or "/"
    return "/"


Visitor = Annotated[Visit, Depends(visitor)]
