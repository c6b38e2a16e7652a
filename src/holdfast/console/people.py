"""Accounts, sessions, tokens, login links, and who tried to get in too often.

Only hashes are kept of whatever lets somebody in.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.errors import NotThere, UnfitState
from holdfast.store.audit import add_audit
from holdfast.store.database import Database
from holdfast.store.driver import Row, Transaction
from holdfast.store.instants import parse_instant, seconds_between

_SEEN_SECONDS = 60.0
_FREE_FAILURES = 5
_LONGEST_BLOCK_SECONDS = 900.0


class UserView(NamedTuple):
    name: str
    role: str
    has_password: bool
    disabled: bool
    created_at: datetime | None
    updated_at: datetime | None


class TokenView(NamedTuple):
    id: int
    user_name: str
    name: str
    created_at: datetime | None
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None


class Known(NamedTuple):
    """Whom a session or a token belongs to."""

    name: str
    role: str


class People:
    def __init__(self, database: Database) -> None:
        self._database = database

    # Accounts.

    async def users(self) -> list[UserView]:
        return [_user(row) for row in await self._database.fetch("users")]

    async def user(self, name: str) -> UserView:
        rows = await self._database.fetch("user", {"name": name})
        if not rows:
            raise NotThere(f"there is no user {name!r}", "`holdfast user list` lists them.")
        return _user(rows[0])

    async def password_hash(self, name: str) -> str | None:
        """None where nobody of that name may log in with a password."""
        rows = await self._database.fetch("password_hash", {"name": name})
        return str(rows[0][0]) if rows and rows[0][0] and not rows[0][1] else None

    async def add_user(self, name: str, role: str, password_hash: str | None, actor: str) -> None:
        params = {"name": name, "role": role, "password_hash": password_hash}

        async def body(tx: Transaction) -> None:
            if not await tx.take("add_user", params):
                raise UnfitState(f"there is a user {name!r} already", "Choose another name.")
            await add_audit(tx, actor, "user.added", None, name, {"role": role})

        await self._database.write("add_user", body)

    async def change_user(
        self,
        name: str,
        actor: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password_hash: str | None = None,
        keep_session: str = "",
    ) -> None:
        """Changes what is given. The last admin stays one; a new password or a disabled account
        ends the person's sessions, except the one that asked."""
        params = {
            "name": name,
            "role": role,
            "disabled": None if disabled is None else int(disabled),
            "password_hash": password_hash,
        }
        told = {"role": role, "disabled": disabled, "password": bool(password_hash)}
        demoted = disabled is True or role not in (None, "admin")

        async def body(tx: Transaction) -> None:
            rows = await tx.fetch("user", {"name": name})
            if not rows:
                raise NotThere(f"there is no user {name!r}", "`holdfast user list` lists them.")
            is_admin = rows[0][1] == "admin" and not rows[0][3]
            if demoted and is_admin and not (await tx.fetch("other_admins", {"name": name}))[0][0]:
                raise UnfitState(f"{name} is the only admin", "Make somebody else admin first.")
            await tx.run("change_user", params)
            if disabled or password_hash:
                await tx.run("end_other_sessions", {"user_name": name, "hash": keep_session})
            await add_audit(tx, actor, "user.changed", None, name, told)

        await self._database.write("change_user", body)

    # Sessions and links.

    async def add_session(
        self, hash: str, user_name: str, ip: str | None, seconds: float, how: str
    ) -> None:
        params = {"hash": hash, "user_name": user_name, "ip": ip, "seconds": seconds}

        async def body(tx: Transaction) -> None:
            await tx.run("add_session", params)
            await add_audit(tx, user_name, "session.begun", None, how, {"ip": ip})

        await self._database.write("add_session", body)

    async def session(self, hash: str) -> Known | None:
        rows = await self._database.fetch("session", {"hash": hash})
        if not rows:
            return None
        if seconds_between(rows[0][2], rows[0][3]) > _SEEN_SECONDS:
            await self._see_session(hash)
        return Known(rows[0][0], rows[0][1])

    async def _see_session(self, hash: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("see_session", {"hash": hash})

        await self._database.write("see_session", body, relaxed=True)

    async def end_session(self, hash: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("end_session", {"hash": hash})

        await self._database.write("end_session", body)

    async def add_login_link(self, hash: str, user_name: str, seconds: float, actor: str) -> None:
        params = {"hash": hash, "user_name": user_name, "seconds": seconds}

        async def body(tx: Transaction) -> None:
            await tx.run("drop_login_links", {"user_name": user_name})
            await tx.run("add_login_link", params)
            await add_audit(tx, actor, "link.made", None, user_name)

        await self._database.write("add_login_link", body)

    async def use_login_link(self, hash: str) -> str | None:
        """Whose link it was, once and in time."""

        async def body(tx: Transaction) -> str | None:
            rows = await tx.take("use_login_link", {"hash": hash})
            return str(rows[0][0]) if rows and rows[0][1] else None

        return await self._database.write("use_login_link", body)

    # Tokens.

    async def tokens(self, user_name: str | None = None) -> list[TokenView]:
        """Of one person, or of all."""
        if user_name is None:
            rows = await self._database.fetch("tokens")
        else:
            rows = await self._database.fetch("tokens_of_user", {"user_name": user_name})
        return [TokenView(*row[:3], *map(parse_instant, row[3:])) for row in rows]

    async def add_token(
        self, user_name: str, name: str, hash: str, seconds: float | None, actor: str
    ) -> int:
        params = {
            "user_name": user_name,
            "name": name,
            "hash": hash,
            "expires": int(seconds is not None),
            "seconds": seconds or 0.0,
        }

        async def body(tx: Transaction) -> int:
            rows = await tx.take("add_token", params)
            await add_audit(tx, actor, "token.made", None, user_name, {"name": name})
            return int(rows[0][0])

        return await self._database.write("add_token", body)

    async def token(self, hash: str) -> Known | None:
        rows = await self._database.fetch("token", {"hash": hash})
        if not rows:
            return None
        token_id, name, role, used_at, now = rows[0]
        if used_at is None or seconds_between(used_at, now) > _SEEN_SECONDS:
            await self._use_token(token_id)
        return Known(name, role)

    async def _use_token(self, token_id: int) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("use_token", {"id": token_id})

        await self._database.write("use_token", body, relaxed=True)

    async def revoke_token(self, token_id: int, actor: str) -> None:
        async def body(tx: Transaction) -> None:
            rows = await tx.take("revoke_token", {"id": token_id})
            if not rows:
                raise NotThere(f"there is no live token {token_id}", "See the list of tokens.")
            await add_audit(tx, actor, "token.revoked", None, rows[0][0], {"name": rows[0][1]})

        await self._database.write("revoke_token", body)

    # Throttling.

    async def login_blocked(self, subjects: Sequence[str]) -> float:
        """Seconds until any of them may try again; 0 if now."""
        rows = await self._database.fetch("login_block", {"subjects": list(subjects)})
        return max((seconds_between(row[2], row[1]) for row in rows), default=0.0)

    async def fail_login(self, subjects: Sequence[str]) -> None:
        """A few failures are free; each further one blocks twice as long."""

        async def body(tx: Transaction) -> None:
            for subject in sorted(subjects):
                rows = await tx.take("add_login_failure", {"subject": subject})
                surplus = rows[0][0] - _FREE_FAILURES
                if surplus >= 0:
                    seconds = min(_LONGEST_BLOCK_SECONDS, 2.0 ** min(surplus, 10))
                    await tx.run("block_login", {"subject": subject, "seconds": seconds})

        await self._database.write("fail_login", body)

    async def clear_login_failures(self, subject: str) -> None:
        async def body(tx: Transaction) -> None:
            await tx.run("clear_login_failures", {"subject": subject})

        await self._database.write("clear_login_failures", body)

    async def forget_expired(self) -> None:
        """Sessions, links and failures whose time is over."""

        async def body(tx: Transaction) -> None:
            await tx.run("forget_sessions", {})
            await tx.run("forget_login_links", {})
            await tx.run("forget_login_failures", {})

        await self._database.write("forget_expired", body)


def _user(row: Row) -> UserView:
    created_at, updated_at = map(parse_instant, row[4:6])
    return UserView(row[0], row[1], bool(row[2]), bool(row[3]), created_at, updated_at)
