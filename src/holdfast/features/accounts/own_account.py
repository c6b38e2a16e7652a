"""Changes that people make to their own account: password and tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.errors import NotAllowed, NotThere, UserError
from holdfast.features.accounts.accounts import Accounts, Secret
from holdfast.features.accounts.passwords import check_password
from holdfast.features.accounts.person import Person

if TYPE_CHECKING:
    from holdfast.features.console import Console

LONGEST_NAME = 200
MOST_DAYS = 3660
_DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class OwnAccount:
    console: Console
    accounts: Accounts
    person: Person

    async def set_password(self, current: str | None, password: str, ip: str | None) -> None:
        """Sets the password; ends the person's other sessions."""
        check_password(password, self.person.name)
        name = self.person.name
        if (await self.console.people.user(name)).has_password:
            await self._check_current(current, ip)
        await self.accounts.change_user(name, name, password=password, session=self.person.session)

    async def make_token(self, name: str, days: int | None) -> Secret:
        name = name.strip()
        if not name or len(name) > LONGEST_NAME or not name.isprintable():
            raise UserError("the token needs a name", "Say what it is for.")
        seconds = None if days is None else days * _DAY_SECONDS
        owner = self.person.name
        return await self.accounts.make_token(owner, name, seconds, owner, self.person.token)

    async def revoke_token(self, token_id: int) -> None:
        """Revokes a token of the person's own; an admin can revoke any."""
        people = self.console.people
        tokens = await people.tokens(None if self.person.is_admin else self.person.name)
        if token_id not in {token.id for token in tokens}:
            raise NotThere(f"there is no token {token_id}", "GET /api/tokens lists yours.")
        await people.revoke_token(token_id, self.person.name)

    async def _check_current(self, current: str | None, ip: str | None) -> None:
        try:
            await self.accounts.require_password(self.person.name, current or "", ip)
        except NotAllowed:
            raise NotAllowed("the current password is wrong", "Give it as `current`.") from None
