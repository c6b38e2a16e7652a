"""Who may log in: accounts, passwords, sessions, one-time links and tokens."""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from holdfast.errors import NotAllowed, Throttled, UserError
from holdfast.features.accounts.passwords import LONGEST_PASSWORD, check_password
from holdfast.features.accounts.people import Known, People
from holdfast.features.accounts.second_factors import SecondFactors
from holdfast.settings import setting

TOKEN_PREFIX = "hf_"
LINK_SECONDS = 24 * 3600.0
_LONGEST_CODE = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}\Z")
#: Each check takes 64 MiB and a core for a moment; when many people log in at once, they wait here.
_CHECKS_AT_ONCE = 2
#: The hash of a random password, so that an unknown name takes as long as a wrong password.
_NOBODYS = (
    "$argon2id$v=19$m=65536,t=3,p=4$Zrnu1PN+9kSfqFj56whtKg$10/bTu"
    "rK+g8MIygyrC9sQvsMjE3aeiuw63TIjegnzCs"
)


class Role(StrEnum):
    ADMIN = "admin"  # sees and changes everything
    OPERATOR = "operator"  # creates jobs; sees and changes their own
    READER = "reader"  # sees every job, changes nothing


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret that is shown once and kept only as a hash."""

    id: int
    value: str


@dataclass(frozen=True, slots=True)
class SessionOptions:
    seconds: float = setting(
        7 * 86_400.0, "How long a login lasts.", 36, 366 * 86_400, name="SESSION_SECONDS"
    )


#: A login ends when it was not used for this long.
_IDLE_SECONDS = 86_400.0


class Accounts:
    def __init__(
        self,
        people: People,
        second_factors: SecondFactors,
        sessions: SessionOptions,
    ) -> None:
        self._people = people
        self._second_factors = second_factors
        self._sessions = sessions
        self._hasher = argon2.PasswordHasher()
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)

    # Accounts.

    async def add_user(self, name: str, role: str, password: str | None, actor: str) -> None:
        if not _NAME.match(name):
            raise UserError(
                f"{name!r} is not a user name",
                "Use up to 64 lowercase letters, digits and . _ @ -; start with a letter or digit.",
            )
        hashed = None if password is None else await self._hash(password, name)
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
        """Changes a user; `session` is the one that asks: a new password does not end it."""
        await self._people.change_user(
            name,
            actor,
            role=None if role is None else role_of(role),
            disabled=disabled,
            password_hash=None if password is None else await self._hash(password, name),
            keep_session="" if session is None else _hashed(session),
        )

    async def first_admin(self) -> str | None:
        """Creates the first account.

        While it has no password, returns a link that lets its owner in; None if people log in by
        other means."""
        users = await self._people.users()
        if not users:
            await self.add_user("admin", Role.ADMIN, None, "holdfast")
            return await self.make_link("admin", "holdfast")
        if [user.name for user in users] == ["admin"] and not users[0].has_password:
            return await self.make_link("admin", "holdfast")
        return None

    # Logging in.

    async def log_in(self, name: str, password: str, ip: str | None, code: str = "") -> str:
        """Returns a new session's id.

        `code` is that of the second factor, if the person has one."""
        await self.require_password(name, password, ip)
        await self.require_code(name, ip, code)
        return await self._begin_session(name, ip, "password")

    async def require_password(self, name: str, password: str, ip: str | None) -> None:
        """Checks the password.

        Failures are counted by name and address together, by address, and by name."""
        subjects = _subjects(name, ip)
        # Whether one may try is decided only when its turn has come: otherwise all of a crowd that
        # arrives at once would be let through before the first failure counts.
        async with self._checks:
            fits = await self._tried(name, password, subjects, ip)
        if not fits:
            raise NotAllowed(
                "name or password is wrong",
                "`holdfast user link NAME` prints a link that lets you in.",
                log_in=True,
            )
        await self._people.clear_login_failures(subjects[0])

    async def require_code(self, name: str, ip: str | None, code: str) -> None:
        if not await self._second_factors.is_needed(name):
            return
        if not code:
            raise NotAllowed(
                "the code of your second factor is missing",
                "Enter the six digits from your app, or a recovery code.",
                log_in=True,
            )
        async with self._checks:  # as for passwords: each failure counts before the next attempt
            fits = await self._tried_code(name, ip, code[:_LONGEST_CODE])
        if not fits:
            raise NotAllowed(
                "the code is wrong or was already used",
                "Wait for the next one, or use a recovery code.",
                log_in=True,
            )

    async def _tried_code(self, name: str, ip: str | None, code: str) -> bool:
        subjects = _subjects(name, ip)
        await self._refuse_blocked(subjects)
        if await self._second_factors.accept(name, code):
            return True
        await self._people.fail_login(subjects, name, ip, "code")
        return False

    async def _refuse_blocked(self, subjects: list[str]) -> None:
        seconds = await self._people.login_blocked(subjects)
        if seconds:
            raise Throttled("too many wrong passwords", seconds, f"Try again in {seconds:.0f} s.")

    async def _tried(self, name: str, password: str, subjects: list[str], ip: str | None) -> bool:
        await self._refuse_blocked(subjects)
        hashed = await self._people.password_hash(name)
        if await self._fits(hashed or _NOBODYS, password) and hashed is not None:
            return True
        await self._people.fail_login(subjects, name, ip, "password")
        return False

    async def make_link(self, name: str, actor: str) -> str:
        user = await self._people.user(name)
        value = secrets.token_urlsafe(24)
        await self._people.add_login_link(_hashed(value), user.name, LINK_SECONDS, actor)
        return value

    async def use_link(self, value: str, ip: str | None, code: str = "") -> str:
        owner = await self._people.link_owner(_hashed(value))
        if owner is not None:
            await self.require_code(owner, ip, code)  # before the link is used up
        name = await self._people.use_login_link(_hashed(value))
        if name is None or (await self._people.user(name)).disabled:
            raise NotAllowed(
                "this link was already used or has expired",
                "`holdfast user link NAME` prints a new one.",
                log_in=True,
            )
        return await self._begin_session(name, ip, "link")

    async def by_session(self, session: str) -> Known | None:
        return await self._people.session(_hashed(session), _IDLE_SECONDS)

    async def log_out(self, session: str) -> None:
        await self._people.end_session(_hashed(session))

    # Tokens.

    async def make_token(
        self,
        user_name: str,
        name: str,
        seconds: float | None,
        actor: str,
        parent: Known | None = None,
    ) -> Secret:
        """Creates a token; it does not outlive `parent`, the token that asks for it."""
        user = await self._people.user(user_name)
        value = TOKEN_PREFIX + secrets.token_urlsafe(32)
        parent_id = None
        if parent is not None and parent.token_id is not None:
            parent_id = parent.token_id
            _refuse_longer_life(seconds, parent.seconds_left)
        hashed = _hashed(value)
        token_id = await self._people.add_token(
            user.name, name, hashed, seconds, actor, parent_id=parent_id
        )
        return Secret(token_id, value)

    async def by_token(self, value: str) -> Known | None:
        return await self._people.token(_hashed(value))

    async def _begin_session(self, name: str, ip: str | None, how: str) -> str:
        session = secrets.token_urlsafe(32)
        await self._people.add_session(_hashed(session), name, ip, self._sessions.seconds, how)
        return session

    async def _hash(self, password: str, name: str) -> str:
        check_password(password, name)
        async with self._checks:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def _fits(self, hashed: str, password: str) -> bool:
        if len(password) > LONGEST_PASSWORD:
            return False
        try:
            return await asyncio.to_thread(self._hasher.verify, hashed, password)
        except (VerificationError, InvalidHashError):
            return False


def _refuse_longer_life(seconds: float | None, seconds_left: float | None) -> None:
    if seconds_left is not None and (seconds is None or seconds > seconds_left):
        raise NotAllowed(
            "a token cannot create one that is valid for longer than itself",
            f"Ask for at most {seconds_left // 86_400:.0f} days, or log in with a password.",
        )


def _subjects(name: str, ip: str | None) -> list[str]:
    """Returns whose failures are counted: one person at one address, an address, and, with more
    patience, a name: someone who guesses from many addresses is slowed down and cannot lock the
    person out."""
    return [f"pair:{name[:64]} {ip}", f"ip:{ip}", f"name:{name[:64]}"]


def role_of(text: str) -> Role:
    if text not in set(Role):
        raise UserError(f"there is no role {text!r}", f"Roles: {', '.join(Role)}.")
    return Role(text)


def _hashed(value: str) -> str:
    """Hashes a secret of 192 bits or more, which cannot be guessed, so SHA-256 is enough; passwords
    get argon2."""
    return hashlib.sha256(value.encode()).hexdigest()
