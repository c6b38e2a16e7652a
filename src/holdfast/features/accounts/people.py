"""Accounts, sessions, tokens, login links, and failed logins.

Of credentials, only hashes are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.errors import NotThere, UnfitState
from holdfast.features.accounts.quotas import NO_LIMITS, Amounts, require_room
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.jobs.audit import add_audit

_SEEN_SECONDS = 60.0
#: How many failures are free, and the longest block in seconds. A name alone is blocked late and
#: briefly: otherwise anyone could lock its owner out.
_IMPATIENCE = (5, 900.0)
_PATIENCE = {"name": (20, 30.0)}


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
    """The person to whom a session or a token belongs."""

    name: str
    role: str
    token_id: int | None = None
    seconds_left: float | None = None  # of a token; None: it does not expire


class People:
    def __init__(self, database: Database, limits: Amounts = NO_LIMITS) -> None:
        self._database = database
        self._limits = limits

    # Accounts.

    async def users(self) -> list[UserView]:
        return [_user(row) for row in await self._database.fetch("users")]

    async def user(self, name: str) -> UserView:
        rows = await self._database.fetch("user", {"name": name})
        if not rows:
            raise NotThere(f"there is no user {name!r}", "`holdfast user list` lists them.")
        return _user(rows[0])

    async def password_hash(self, name: str) -> str | None:
        """Returns the hash; None if no user of that name can log in with a password."""
        rows = await self._database.fetch("password_hash", {"name": name})
        if not rows or rows[0]["disabled"]:
            return None
        hash: str | None = rows[0]["password_hash"]
        return hash

    @verb
    async def add_user(
        self, tx: Transaction, name: str, role: str, password_hash: str | None, actor: str
    ) -> None:
        params = {"name": name, "role": role, "password_hash": password_hash}
        if not await tx.take("add_user", params):
            raise UnfitState(f"the user {name!r} already exists", "Choose another name.")
        await add_audit(tx, actor, "user.added", None, name, {"role": role})

    @verb
    async def change_user(
        self,
        tx: Transaction,
        name: str,
        actor: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password_hash: str | None = None,
        keep_session: str = "",
    ) -> None:
        """Changes what is given.

        The last admin stays one; a new password or a disabled account ends the person's sessions,
        except the one that asked, and their login links; a new password also revokes their
        tokens."""
        params = {
            "name": name,
            "role": role,
            "disabled": None if disabled is None else int(disabled),
            "password_hash": password_hash,
        }
        detail = {"role": role, "disabled": disabled, "password": bool(password_hash)}
        demoted = disabled is True or role not in (None, "admin")
        if demoted:  # one at a time: two admins who demote each other would leave none
            await tx.fetch("hold_input", {"input": "admins"})
        rows = await tx.fetch("user", {"name": name})
        if not rows:
            raise NotThere(f"there is no user {name!r}", "`holdfast user list` lists them.")
        is_admin = rows[0]["role"] == "admin" and not rows[0]["disabled"]
        if demoted and is_admin and not (await tx.fetch("other_admins", {"name": name}))[0][0]:
            raise UnfitState(f"{name} is the only admin", "Make another user an admin first.")
        await tx.run("change_user", params)
        if disabled or password_hash:
            await tx.run("end_other_sessions", {"user_name": name, "hash": keep_session})
            await tx.run("drop_login_links", {"user_name": name})
        if password_hash:
            await tx.run("revoke_tokens_of_user", {"user_name": name})
        await add_audit(tx, actor, "user.changed", None, name, detail)

    # Sessions and links.

    @verb
    async def add_session(
        self, tx: Transaction, hash: str, user_name: str, ip: str | None, seconds: float, how: str
    ) -> None:
        params = {"hash": hash, "user_name": user_name, "ip": ip, "seconds": seconds}
        await tx.run("add_session", params)
        await add_audit(tx, user_name, "session.started", None, how, {"ip": ip})

    async def session(self, hash: str, idle_seconds: float) -> Known | None:
        """Returns the session's person; None once it is over, or was unused for too long."""
        rows = await self._database.fetch("session", {"hash": hash, "idle": -idle_seconds})
        if not rows:
            return None
        if rows[0]["unseen_seconds"] > _SEEN_SECONDS:
            await self._see_session(hash)
        return Known(rows[0]["name"], rows[0]["role"])

    @verb(relaxed=True)
    async def _see_session(self, tx: Transaction, hash: str) -> None:
        await tx.run("see_session", {"hash": hash})

    @verb
    async def end_session(self, tx: Transaction, hash: str) -> None:
        for row in await tx.take("end_session", {"hash": hash}):
            await add_audit(tx, row["user_name"], "session.ended", None, "")

    @verb
    async def add_login_link(
        self, tx: Transaction, hash: str, user_name: str, seconds: float, actor: str
    ) -> None:
        params = {"hash": hash, "user_name": user_name, "seconds": seconds}
        await tx.run("drop_login_links", {"user_name": user_name})
        await tx.run("add_login_link", params)
        await add_audit(tx, actor, "link.created", None, user_name)

    async def link_owner(self, hash: str) -> str | None:
        rows = await self._database.fetch("link_owner", {"hash": hash})
        return str(rows[0]["user_name"]) if rows else None

    @verb
    async def use_login_link(self, tx: Transaction, hash: str) -> str | None:
        """Uses up a link; returns whose it was, once and in time."""
        rows = await tx.take("use_login_link", {"hash": hash})
        return str(rows[0][0]) if rows and rows[0][1] else None

    # Tokens.

    async def tokens(self, user_name: str | None = None) -> list[TokenView]:
        """Lists the tokens of one person, or of all."""
        rows = await self._database.fetch("tokens", {"user_name": user_name})
        return [TokenView(**fields_of(row)) for row in rows]

    @verb
    async def add_token(
        self,
        tx: Transaction,
        user_name: str,
        name: str,
        hash: str,
        seconds: float | None,
        actor: str,
        *,
        parent_id: int | None = None,
    ) -> int:
        await require_room(tx, self._limits, user_name, tokens=1)
        params = {
            "parent_id": parent_id,
            "user_name": user_name,
            "name": name,
            "hash": hash,
            "expires": int(seconds is not None),
            "seconds": seconds or 0.0,
        }
        rows = await tx.take("add_token", params)
        await add_audit(tx, actor, "token.created", None, user_name, {"name": name})
        return int(rows[0][0])

    async def token(self, hash: str) -> Known | None:
        rows = await self._database.fetch("token", {"hash": hash})
        if not rows:
            return None
        unused_seconds = rows[0]["unused_seconds"]
        if unused_seconds is None or unused_seconds > _SEEN_SECONDS:
            await self._use_token(rows[0]["id"])
        row = rows[0]
        return Known(row["name"], row["role"], row["id"], row["seconds_left"])

    @verb(relaxed=True)
    async def _use_token(self, tx: Transaction, token_id: int) -> None:
        await tx.run("use_token", {"id": token_id})

    @verb
    async def revoke_token(self, tx: Transaction, token_id: int, actor: str) -> None:
        rows = await tx.take("revoke_token", {"id": token_id})
        if not rows:
            raise NotThere(f"there is no valid token {token_id}", "See the list of tokens.")
        for row in rows:
            detail = {"name": row["name"]}
            await add_audit(tx, actor, "token.revoked", None, row["user_name"], detail)

    # Throttling.

    async def login_blocked(self, subjects: Sequence[str]) -> float:
        """Returns the seconds until any of them may try again; 0 if now."""
        rows = await self._database.fetch("login_block", {"subjects": list(subjects)})
        return max((float(row["seconds"]) for row in rows), default=0.0)

    @verb
    async def fail_login(
        self, tx: Transaction, subjects: Sequence[str], name: str, ip: str | None, what: str
    ) -> None:
        """Counts a failure.

        A few are free; each further one blocks twice as long. What was typed as a name is stored
        only if it is one: it may be a password in the wrong field."""
        for subject in sorted(subjects):
            rows = await tx.take("add_login_failure", {"subject": subject})
            free, longest = _PATIENCE.get(subject.partition(":")[0], _IMPATIENCE)
            surplus = rows[0][0] - free
            if surplus >= 0:
                seconds = min(longest, 2.0 ** min(surplus, 10))
                await tx.run("block_login", {"subject": subject, "seconds": seconds})
        known = bool(await tx.fetch("user", {"name": name}))
        actor = name if known else "unknown"
        await add_audit(tx, actor, "session.refused", None, what, {"ip": ip})

    @verb
    async def clear_login_failures(self, tx: Transaction, subject: str) -> None:
        await tx.run("clear_login_failures", {"subject": subject})

    @verb
    async def forget_expired(self, tx: Transaction) -> None:
        """Removes expired sessions, links and failures."""
        await tx.run("forget_sessions", {})
        await tx.run("forget_login_links", {})
        await tx.run("forget_login_failures", {})
        await tx.run("forget_nonces", {})


def _user(row: Row) -> UserView:
    fields = fields_of(row)
    flags = {name: bool(fields[name]) for name in ("has_password", "disabled")}
    return UserView(**fields | flags)
