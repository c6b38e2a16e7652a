"""Who asks: a session's cookie or a token, and what that person may see and do."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Response
from itsdangerous import BadSignature, Signer

from holdfast.api.dependencies import Parts
from holdfast.console.accounts import Role
from holdfast.console.people import Known
from holdfast.errors import NotAllowed

COOKIE = "holdfast_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    role: Role
    session: str | None = None  # None: came with a token
    token: Known | None = None

    @property
    def scope(self) -> str | None:
        """Whose jobs they see: their own, or everybody's (None)."""
        return self.name if self.role is Role.OPERATOR else None

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def may_change(self) -> bool:
        return self.role is not Role.READER


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def ip_of(request: Request) -> str | None:
    return request.client.host if request.client else None


async def find_person(request: Request) -> Person | None:
    """Looked up once a request."""
    if not hasattr(request.state, "person"):
        request.state.person = await look_up(request)
    found: Person | None = request.state.person
    return found


async def look_up(request: Request) -> Person | None:
    """Who asks, as it is known now: for what goes on long after it was asked for."""
    accounts = parts_of(request).accounts
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        known = await accounts.by_token(token.strip())
        return None if known is None else Person(known.name, Role(known.role), token=known)
    session = _session_of(request)
    if session is None:
        return None
    known = await accounts.by_session(session)
    return None if known is None else Person(known.name, Role(known.role), session)


def _session_of(request: Request) -> str | None:
    cookie = request.cookies.get(COOKIE)
    if not cookie:
        return None
    try:
        return _signer(parts_of(request)).unsign(cookie.encode("latin-1", "replace")).decode()
    except (BadSignature, UnicodeDecodeError):
        return None


def _signer(parts: Parts) -> Signer:
    return Signer(parts.secret, salt="session", digest_method=hashlib.sha256)


def csrf_token(parts: Parts, session: str) -> str:
    """Belongs to one session; pages put it in their forms and in the header of their requests."""
    return hmac.new(parts.secret, b"csrf " + session.encode(), hashlib.sha256).hexdigest()


def csrf_fits(parts: Parts, session: str, given: str) -> bool:
    return hmac.compare_digest(csrf_token(parts, session).encode(), given.encode())


def check_csrf(parts: Parts, person: Person, given: str) -> None:
    """A token cannot be sent by a browser unasked; a cookie can."""
    if person.session is None:
        return
    if not csrf_fits(parts, person.session, given):
        raise NotAllowed(
            "the CSRF token is missing or wrong",
            f"Send the csrfToken of GET /api/session in the header {CSRF_HEADER}.",
        )


def set_cookie(response: Response, request: Request, session: str) -> None:
    parts = parts_of(request)
    response.set_cookie(
        COOKIE,
        _signer(parts).sign(session).decode(),
        max_age=int(parts.options.session_seconds),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


async def someone(request: Request) -> Person:
    """Anybody who is logged in; a change asked for by cookie needs the CSRF token too."""
    person = await find_person(request)
    if person is None:
        raise NotAllowed(
            "log in first",
            "POST /api/session, or send a token: Authorization: Bearer hf_…",
            log_in=True,
        )
    if request.method not in SAFE_METHODS:
        check_csrf(parts_of(request), person, request.headers.get(CSRF_HEADER, ""))
    return person


def require_session(person: Person, deed: str) -> None:
    """For what outlives a token that was stolen."""
    if person.session is None:
        raise NotAllowed(f"a token cannot {deed}", "Log in with a password or a link.")


async def operator(person: Annotated[Person, Depends(someone)]) -> Person:
    if not person.may_change:
        raise NotAllowed(f"{person.name} may look, but change nothing", "Ask an admin.")
    return person


async def admin(person: Annotated[Person, Depends(someone)]) -> Person:
    if not person.is_admin:
        raise NotAllowed("only an admin may do this", "Ask an admin.")
    return person


PartsOf = Annotated[Parts, Depends(parts_of)]
Someone = Annotated[Person, Depends(someone)]
Operator = Annotated[Person, Depends(operator)]
Admin = Annotated[Person, Depends(admin)]
