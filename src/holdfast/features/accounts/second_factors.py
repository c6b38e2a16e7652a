"""Second factors: a secret in the user's app, and recovery codes for when the app is lost."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.clock import Clock
from holdfast.errors import UnfitState
from holdfast.features.accounts import totp
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.audit import add_audit

_RECOVERY_CODES = 10
_RECOVERY_BYTES = 10


@dataclass(frozen=True, slots=True)
class Enrolment:
    """A new second factor, shown once."""

    secret: str
    address: str
    recovery_codes: Sequence[str]


class SecondFactors:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def is_needed(self, user_name: str) -> bool:
        """Whether the person has confirmed a second factor."""
        return bool(await self._database.fetch("second_factor_on", {"user_name": user_name}))

    async def enrol(self, user_name: str) -> Enrolment:
        """Returns a new secret.

        It counts once a code of it was entered, so that users do not lock themselves out with an
        app that did not store it."""
        secret = totp.new_secret()
        codes = [secrets.token_hex(_RECOVERY_BYTES) for _ in range(_RECOVERY_CODES)]
        await self._begin_second_factor(user_name, secret, codes)
        return Enrolment(secret, totp.address(secret, user_name), codes)

    async def confirm(self, user_name: str, code: str) -> bool:
        rows = await self._database.fetch("second_factor", {"user_name": user_name})
        if not rows:
            return False
        step = totp.fitting_step(rows[0]["secret"], code, self._clock.now())
        return step is not None and await self._confirm_second_factor(user_name, step)

    async def accept(self, user_name: str, code: str) -> bool:
        """Accepts a code of the app or a recovery code, each once."""
        rows = await self._database.fetch("second_factor", {"user_name": user_name})
        if not rows:
            return False
        step = totp.fitting_step(rows[0]["secret"], code, self._clock.now())
        if step is not None:
            return await self._use_code(user_name, step)
        return await self._use_recovery_code(user_name, _hashed(code))

    @verb
    async def remove_second_factor(self, tx: Transaction, user_name: str, actor: str) -> bool:
        removed = await tx.take("remove_second_factor", {"user_name": user_name})
        await tx.run("remove_recovery_codes", {"user_name": user_name})
        if removed:
            await add_audit(tx, actor, "second_factor.removed", None, user_name)
        return bool(removed)

    @verb
    async def _begin_second_factor(
        self, tx: Transaction, user_name: str, secret: str, codes: Sequence[str]
    ) -> None:
        if not await tx.take("begin_second_factor", {"user_name": user_name, "secret": secret}):
            raise UnfitState("you already have a second factor", "Remove it first.")
        await tx.run("remove_recovery_codes", {"user_name": user_name})
        for code in codes:
            hash = {"user_name": user_name, "hash": _hashed(code)}
            await tx.run("add_recovery_code", hash)

    @verb
    async def _confirm_second_factor(self, tx: Transaction, user_name: str, step: int) -> bool:
        params = {"user_name": user_name, "step": step}
        confirmed = await tx.take("confirm_second_factor", params)
        if confirmed:
            await add_audit(tx, user_name, "second_factor.added", None, user_name)
        return bool(confirmed)

    @verb
    async def _use_code(self, tx: Transaction, user_name: str, step: int) -> bool:
        """Uses up a code: if two requests use the same one, only one succeeds."""
        return bool(await tx.take("use_code", {"user_name": user_name, "step": step}))

    @verb
    async def _use_recovery_code(self, tx: Transaction, user_name: str, hash: str) -> bool:
        used = await tx.take("use_recovery_code", {"user_name": user_name, "hash": hash})
        if used:
            await add_audit(tx, user_name, "recovery_code.used", None, user_name)
        return bool(used)


def _hashed(code: str) -> str:
    """Hashes a code; SHA-256 is enough for 80 random bits."""
    return hashlib.sha256(code.strip().lower().encode()).hexdigest()
