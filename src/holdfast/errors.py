"""Error codes, their categories and retry classes, and every exception.

HoldfastError
├── UserError              a mistake that a person can fix; shown without a stack trace
│   ├── InputError         a file or record that cannot be read
│   │   └── TwinColumns    two columns for one field
│   ├── SettingsError      a setting that is unknown or out of bounds
│   ├── PipelineError      a pipeline that cannot be loaded or breaks its contract
│   ├── NotThere           something that does not exist or is not visible to the caller
│   ├── UnfitState         an action that is not allowed in the current state
│   │   ├── IllegalTransition  a state change that `model` does not allow
│   │   └── StreamOwned    the job of another owner could continue from the stream's checkpoint
│   ├── SwitchedOff        a flag, a kill switch or a setting is in the way; it may be changed
│   │   └── Disabled       new jobs of a pipeline are off until someone switches them on
│   ├── NotAllowed         missing permission, or not logged in
│   ├── TooLarge           a body or a file over its limit
│   ├── Throttled          too many requests; try again later
│   └── SchemaError        the database schema does not match this version
├── DiscoveryError         a source that cannot be read further (repeated cursor …)
├── LeaseLost              the range was taken over, cancelled or already settled
├── DatabaseGone           the database cannot be reached now; waiting may help
├── BrokerGone             the broker cannot be reached now; waiting may help
├── FilesGone              the file store cannot be used now; waiting may help
├── BadEnvelope            a message that is not a valid envelope, with a code and a reason
├── GateWait               an item has to wait for a gate and is put back
└── ItemError              the failure of one record, with its code

What a pipeline may return or raise besides a result: NotFound, Skip, Retry, Failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast_client.errors import HoldfastError as HoldfastError
from holdfast_client.errors import InputError as InputError
from holdfast_client.errors import LeaseLost as LeaseLost
from holdfast_client.errors import NotThere as NotThere
from holdfast_client.errors import SchemaError as SchemaError
from holdfast_client.errors import TwinColumns as TwinColumns
from holdfast_client.errors import UnfitState as UnfitState
from holdfast_client.errors import UserError as UserError


class SettingsError(UserError):
    """A setting that is unknown or out of bounds."""


class PipelineError(UserError):
    """A pipeline that cannot be loaded or breaks its contract."""


class IllegalTransition(UnfitState):
    """A state change that the model does not allow."""


class StreamOwned(UnfitState):
    """A new job would discard another owner's checkpoint. Only `named` says whose."""

    def __init__(self, source: str, pipeline: str, job_id: int, owner_id: str) -> None:
        super().__init__(
            f"{source} of {pipeline} belongs to another owner's job, which can still continue "
            "from its checkpoint",
            "Ask an admin to take it over.",
        )
        self.named = UnfitState(
            f"{source} of {pipeline} belongs to job {job_id} of {owner_id}, which can still "
            "continue from its checkpoint",
            "Take it over explicitly (`takeOver` or --take-over), or cancel that job.",
        )


class SwitchedOff(UserError):
    """A flag, a kill switch or a setting is in the way."""


class Disabled(SwitchedOff):
    """Raised if new jobs are off until someone switches them on."""


class NotAllowed(UserError):
    """The caller has no permission. With `log_in`, because the caller is not logged in."""

    def __init__(self, message: str, hint: str | None = None, *, log_in: bool = False) -> None:
        super().__init__(message, hint)
        self.log_in = log_in


class TooLarge(UserError):
    """A body or a file over its limit."""


class Throttled(UserError):
    """Too many requests: try again after `seconds`."""

    def __init__(self, message: str, seconds: float, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.seconds = seconds


class DiscoveryError(HoldfastError):
    """A source that cannot be read further without risking loss."""


class DatabaseGone(HoldfastError):
    """The database cannot be reached now."""


class BrokerGone(HoldfastError):
    """The broker cannot be reached now."""


class FilesGone(HoldfastError):
    """The file store cannot be used now. The hint is for operators."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class BadEnvelope(HoldfastError):
    """A message that is not a valid envelope; it becomes a dead letter."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class GateWait(HoldfastError):
    """The gate stays closed for the next `seconds`."""

    def __init__(self, gate: str, seconds: float, reason: str) -> None:
        super().__init__(f"{gate}: {reason}, {seconds:.1f} s")
        self.gate = gate
        self.seconds = seconds
        self.reason = reason


class ItemError(HoldfastError):
    """The failure of one record. Its code decides whether and when it is retried."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retry_after: float | None = None,
        effects: Any = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.effects = effects  # passed to `save` after each attempt, even if another one follows


class NotFound(Exception):
    """The record was looked for and does not exist.

    `result` is shown and exported once no further attempt is made. `effects` are passed to `save`
    after each attempt, even if another one follows."""

    def __init__(self, reason: str = "", *, result: Any = None, effects: Any = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.result = result
        self.effects = effects


class Skip(Exception):
    """The record needs no processing; give the reason as text."""


class Retry(Exception):
    """Try the record again, after at least `after` seconds."""

    def __init__(self, reason: str = "requested by the pipeline", *, after: float | None = None):
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Failed(Exception):
    """The record failed with one of ERROR_CODES or a code of the pipeline."""

    def __init__(self, code: str = "UNKNOWN_ERROR", message: str = "") -> None:
        super().__init__(message or code)
        self.code = code
        self.message = message or code


class Category(StrEnum):
    RATE_LIMITING = "rate_limiting"
    CONTENT = "content"
    NETWORK = "network"
    PARSING = "parsing"
    MEDIA = "media"
    STORAGE = "storage"
    GENERIC = "generic"


class RetryClass(StrEnum):
    """How an error is retried."""

    THROTTLE = "throttle"  # wait as the server says; does not count as an attempt
    SOON = "soon"  # temporary: full-jitter backoff, starting at seconds
    LATER = "later"  # takes time to resolve: backoff, starting at minutes
    NEVER = "never"  # permanent


@dataclass(frozen=True, slots=True)
class ErrorCode:
    code: str
    category: Category
    retry: RetryClass
    alert: bool = False  # a person has to look: credentials, a changed format


def _table(*rows: tuple[str, Category, RetryClass, bool]) -> dict[str, ErrorCode]:
    return {row[0]: ErrorCode(*row) for row in rows}


_C, _R = Category, RetryClass

#: The 21 codes of the crawler's events in 7 categories, then those of the engine.
ERROR_CODES: dict[str, ErrorCode] = _table(
    ("RATE_LIMITED", _C.RATE_LIMITING, _R.THROTTLE, False),
    ("AUTH_FAILED", _C.RATE_LIMITING, _R.NEVER, True),
    ("ACCESS_DENIED", _C.RATE_LIMITING, _R.NEVER, True),
    ("CONTENT_REMOVED", _C.CONTENT, _R.NEVER, False),
    ("CONTENT_NOT_FOUND", _C.CONTENT, _R.NEVER, False),
    ("CONTENT_UNAVAILABLE", _C.CONTENT, _R.LATER, False),
    ("NETWORK_ERROR", _C.NETWORK, _R.SOON, False),
    ("TIMEOUT", _C.NETWORK, _R.SOON, False),
    ("CONNECTION_REFUSED", _C.NETWORK, _R.SOON, False),
    ("DNS_ERROR", _C.NETWORK, _R.SOON, False),
    ("PARSE_ERROR", _C.PARSING, _R.NEVER, True),
    ("INVALID_URL", _C.PARSING, _R.NEVER, False),
    ("INVALID_RESPONSE", _C.PARSING, _R.NEVER, True),
    ("MEDIA_DOWNLOAD_FAILED", _C.MEDIA, _R.NEVER, False),
    ("MEDIA_TOO_LARGE", _C.MEDIA, _R.NEVER, False),
    ("MEDIA_FORMAT_ERROR", _C.MEDIA, _R.NEVER, False),
    ("STORAGE_ERROR", _C.STORAGE, _R.SOON, True),
    ("UPLOAD_FAILED", _C.STORAGE, _R.SOON, True),
    ("DATABASE_ERROR", _C.STORAGE, _R.SOON, True),
    ("UNKNOWN_ERROR", _C.GENERIC, _R.SOON, False),
    ("INTERNAL_ERROR", _C.GENERIC, _R.SOON, True),
    ("CRASHED", _C.GENERIC, _R.NEVER, True),
    ("INVALID_RESULT", _C.PARSING, _R.NEVER, True),
    ("BAD_ROW", _C.PARSING, _R.NEVER, False),
    ("TOO_LARGE", _C.PARSING, _R.NEVER, False),
    ("ROBOTS_DISALLOWED", _C.CONTENT, _R.NEVER, False),
    ("PRIVATE_ADDRESS", _C.NETWORK, _R.NEVER, True),
    ("CANCELLED", _C.GENERIC, _R.NEVER, False),
)


def error_code(code: str, extra: dict[str, ErrorCode] | None = None) -> ErrorCode:
    """Returns the entry of a code; an unknown one keeps its name and counts as generic."""
    known = (extra or {}).get(code) or ERROR_CODES.get(code)
    return known or ErrorCode(code, Category.GENERIC, RetryClass.SOON)
