"""Who may come in: accounts, passwords, sessions, one-time links and tokens."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.console.people import Known, People
from holdfast.errors import NotAllowed, Throttled, UserError

TOKEN_PREFIX = "hf_"
LINK_SECONDS = 24 * 3600.0
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}\Z")
_SHORTEST_PASSWORD = 8
_LONGEST_PASSWORD = 1000
#: Each check takes 64 MiB and a core for a moment; a crowd at the door waits here.
_CHECKS_AT_ONCE = 2
#: Of a password that nobody has, so that an unknown name takes as long as a wrong password.
_NOBODYS = (
    "$argon2id$v=19$m=65536,t=3,p=4$Zrnu1PN+9kSfqFj56whtKg$10/bTu"
    "rK+g8MIygyrC9sQvsMjE3aeiuw63TIjegnzCs"
)


class Role(StrEnum):
    ADMIN = "admin"  # sees and changes everything
    OPERATOR = "operator"  # makes jobs; sees and changes their own
    READER = "reader"  # sees every job, changes nothing


@dataclass(frozen=True, slots=True)
class Secret:
    """What is shown once and kept only as a hash."""

    id: int
    value: str


class Accounts:
    def __init__(self, people: People, session_seconds: float) -> None:
        self._people = people
        self._session_seconds = session_seconds
        self._hasher = argon2.PasswordHasher()
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)

    # Accounts.

    async def add_user(self, name: str, role: str, password: str | None, actor: str) -> None:
        if not _NAME.match(name):
            raise UserError(
                f"{name!r} is not a user name",
                "Up to 64 small letters, digits and . _ @ - , beginning with a letter or digit.",
            )
        hashed = None if password is None else await self._hash(password)
        await self._people.add_user(name, role_of(role), hashed, actor)

    async def change_user(
        self,
        name: str,
        actor: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password: str | None = None,
        session: str | None = None,
    ) -> None:
        """`session` is the one that asks: a new password does not end it."""
        await self._people.change_user(
            name,
            actor,
            role=None if role is None else role_of(role),
            disabled=disabled,
            password_hash=None if password is None else await self._hash(password),
            keep_session="" if session is None else _hashed(session),
        )

    async def first_admin(self) -> str | None:
        """Makes the first account. While it has no password, returns a link that lets its owner
        in; None where people come in by themselves."""
        users = await self._people.users()
        if not users:
            await self.add_user("admin", Role.ADMIN, None, "holdfast")
            return await self.make_link("admin", "holdfast")
        if [user.name for user in users] == ["admin"] and not users[0].has_password:
            return await self.make_link("admin", "holdfast")
        return None

    # Coming in.

    async def log_in(self, name: str, password: str, ip: str | None) -> str:
        """A new session's id. Failures are counted by name and by address."""
        subjects = [f"name:{name[:64]}", f"ip:{ip}"]
        # Whether one may try is asked when its turn has come: else all of a crowd that comes at
        # once would be let through before the first failure counts.
        async with self._checks:
            fits = await self._tried(name, password, subjects)
        if not fits:
            raise NotAllowed(
                "name or password is wrong",
                "`holdfast user link NAME` prints a link that lets you in.",
                log_in=True,
            )
        await self._people.clear_login_failures(subjects[0])
        return await self._begin_session(name, ip, "password")

    async def _tried(self, name: str, password: str, subjects: list[str]) -> bool:
        seconds = await self._people.login_blocked(subjects)
        if seconds:
            raise Throttled("too many wrong passwords", seconds, f"Try again in {seconds:.0f} s.")
        hashed = await self._people.password_hash(name)
        if await self._fits(hashed or _NOBODYS, password) and hashed is not None:
            return True
        await self._people.fail_login(subjects)
        return False

    async def make_link(self, name: str, actor: str) -> str:
        user = await self._people.user(name)
        value = secrets.token_urlsafe(24)
        await self._people.add_login_link(_hashed(value), user.name, LINK_SECONDS, actor)
        return value

    async def use_link(self, value: str, ip: str | None) -> str:
        name = await self._people.use_login_link(_hashed(value))
        if name is None or (await self._people.user(name)).disabled:
            raise NotAllowed(
                "this link was used already, or its time is over",
                "`holdfast user link NAME` prints a new one.",
                log_in=True,
            )
        return await self._begin_session(name, ip, "link")

    async def by_session(self, session: str) -> Known | None:
        return await self._people.session(_hashed(session))

    async def log_out(self, session: str) -> None:
        await self._people.end_session(_hashed(session))

    # Tokens.

    async def make_token(
        self, user_name: str, name: str, seconds: float | None, actor: str
    ) -> Secret:
        user = await self._people.user(user_name)
        value = TOKEN_PREFIX + secrets.token_urlsafe(32)
        token_id = await self._people.add_token(user.name, name, _hashed(value), seconds, actor)
        return Secret(token_id, value)

    async def by_token(self, value: str) -> Known | None:
        return await self._people.token(_hashed(value))

    async def _begin_session(self, name: str, ip: str | None, how: str) -> str:
        session = secrets.token_urlsafe(32)
        await self._people.add_session(_hashed(session), name, ip, self._session_seconds, how)
        return session

    async def _hash(self, password: str) -> str:
        if len(password) < _SHORTEST_PASSWORD:
            raise UserError(
                "the password is too short", f"At least {_SHORTEST_PASSWORD} characters."
            )
        if len(password) > _LONGEST_PASSWORD:
            raise UserError("the password is too long", f"At most {_LONGEST_PASSWORD} characters.")
        async with self._checks:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def _fits(self, hashed: str, password: str) -> bool:
        if len(password) > _LONGEST_PASSWORD:
            return False
        try:
            return await asyncio.to_thread(self._hasher.verify, hashed, password)
        except (VerificationError, InvalidHashError):
            return False


def role_of(text: str) -> Role:
    if text not in set(Role):
        raise UserError(f"there is no role {text!r}", f"Roles: {', '.join(Role)}.")
    return Role(text)


def _hashed(value: str) -> str:
    """Enough for secrets of 192 bits and more, which nobody can guess; passwords get argon2."""
    return hashlib.sha256(value.encode()).hexdigest()
