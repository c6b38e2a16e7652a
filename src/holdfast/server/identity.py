"""Authentication: a session cookie or a token, and the role that a route requires."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from fastapi import Depends, Request, Response
from itsdangerous import BadSignature, Signer

from holdfast.errors import NotAllowed
from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.person import Person as Person
from holdfast.server.dependencies import Parts

COOKIE = "holdfast_session"
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def parts_of(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def ip_of(request: Request) -> str | None:
    return request.client.host if request.client else None


async def find_person(request: Request) -> Person | None:
    """Returns the person who sent the request, looked up once per request."""
    if not hasattr(request.state, "person"):
        request.state.person = await look_up(request)
    person: Person | None = request.state.person
    return person


async def look_up(request: Request) -> Person | None:
    """Returns the person as the database knows them now, for requests that stay open for long."""
    accounts = parts_of(request).accounts
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() == "bearer":
        user = await accounts.by_token(token.strip())
        return None if user is None else Person(user.name, Role(user.role), token=user)
    session = _session_of(request)
    if session is None:
        return None
    user = await accounts.by_session(session)
    return None if user is None else Person(user.name, Role(user.role), session)


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
    """Returns the token of a session; pages send it in their forms and request headers."""
    return hmac.new(parts.secret, b"csrf " + session.encode(), hashlib.sha256).hexdigest()


def csrf_matches(parts: Parts, session: str, token: str) -> bool:
    return hmac.compare_digest(csrf_token(parts, session).encode(), token.encode())


def check_csrf(parts: Parts, person: Person, token: str) -> None:
    """Checks the token of a session only: a browser sends cookies by itself, but never an API
    token."""
    if person.session is None:
        return
    if not csrf_matches(parts, person.session, token):
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
    """Requires a logged-in user; a change made with a cookie also needs the CSRF token."""
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


def require_session(person: Person, action: str) -> None:
    """Requires a session, for changes that would outlive a stolen token."""
    if person.session is None:
        raise NotAllowed(f"a token cannot {action}", "Log in with a password or a link.")


async def operator(person: Annotated[Person, Depends(someone)]) -> Person:
    person.require_change()
    return person


async def admin(person: Annotated[Person, Depends(someone)]) -> Person:
    person.require_admin()
    return person


PartsOf = Annotated[Parts, Depends(parts_of)]
Someone = Annotated[Person, Depends(someone)]
Operator = Annotated[Person, Depends(operator)]
Admin = Annotated[Person, Depends(admin)]
