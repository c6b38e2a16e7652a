"""The errors of adding records, and those that all of Holdfast builds on."""

from __future__ import annotations


class HoldfastError(Exception):
    """Base of every error that Holdfast raises itself."""


class UserError(HoldfastError):
    """A mistake that a person can fix: what is wrong, and what to do next."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint:
            self.add_note(hint)  # in the tracebacks of applications


class InputError(UserError):
    """A file or record that cannot be read."""


class TwinColumns(InputError):
    """Two columns that would be read as the same field."""

    def __init__(self, first: str, second: str, field: str) -> None:
        super().__init__(
            f"The columns {first!r} and {second!r} would both be read as {field!r}.",
            "Choose one of them, or another name for one of them.",
        )
        self.of_row = f"has both {first!r} and {second!r}, which would be read as {field!r}"


class NotThere(UserError):
    """It does not exist, or is not visible to the caller, who cannot know which."""


class UnfitState(UserError):
    """The action is not allowed in the current state."""


class SchemaError(UserError):
    """The database schema does not match this version."""


class LeaseLost(HoldfastError):
    """The range was taken over, cancelled or already settled; nothing was written."""
