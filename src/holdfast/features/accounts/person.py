"""The person who sends a request: their name, role, and what they may see and change."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.errors import NotAllowed
from holdfast.features.accounts.accounts import Role
from holdfast.features.accounts.people import Known


@dataclass(frozen=True, slots=True)
class Person:
    name: str
    role: Role
    session: str | None = None  # None: authenticated by a token
    token: Known | None = None

    @property
    def scope(self) -> str | None:
        """The owner whose jobs they see: themselves, or None for all owners."""
        return self.name if self.role is Role.OPERATOR else None

    @property
    def own_scope(self) -> str | None:
        """The same for what only admins see of others, such as exports: readers see their own."""
        return None if self.is_admin else self.name

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN

    @property
    def may_change(self) -> bool:
        return self.role is not Role.READER

    def require_change(self) -> None:
        if not self.may_change:
            raise NotAllowed(f"{self.name} has read-only access", "Ask an admin.")

    def require_admin(self) -> None:
        if not self.is_admin:
            raise NotAllowed("only an admin may do this", "Ask an admin.")
