"""What a pipeline gets back from `ctx.http`."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson

from holdfast.errors import ItemError
from holdfast.http.statuses import code_of_status, phrase_of_status
from holdfast.text_encodings import codec_named

_SAMPLE_CHARACTERS = 200
# Types with which careless servers send JSON; anything else that is not JSON's own is refused.
_UNTYPED = frozenset(
    {"", "text/plain", "application/octet-stream", "text/javascript", "application/javascript"}
)
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9_.:-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    url: str  # the URL that it came from, after redirects
    headers: httpx2.Headers  # names in any case
    content: bytes  # decompressed and complete
    history: tuple[str, ...] = ()  # the URLs that redirected here
    retry_after: float | None = None  # seconds that the server asks to wait, bounded
    throttled: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The type in lower case, without parameters; empty if the server sent none."""
        value: str = self.headers.get("content-type", "")
        return value.partition(";")[0].strip().lower()

    @property
    def text(self) -> str:
        """The body decoded by its charset, otherwise as UTF-8, with invalid bytes marked."""
        encoding = self._charset() or "utf-8"
        return self.content.decode("utf-8-sig" if encoding == "utf-8" else encoding, "replace")

    def json(self) -> Any:
        """Parses the body.

        Raises INVALID_RESPONSE if its type is not JSON's, PARSE_ERROR if it is and the body is not
        JSON."""
        kind = self.content_type
        if not (kind.endswith(("/json", "+json")) or kind in _UNTYPED):
            raise ItemError("INVALID_RESPONSE", f"{self._label} is {kind}, not JSON: {self.sample}")
        try:
            return orjson.loads(self.content.removeprefix(codecs.BOM_UTF8))
        except orjson.JSONDecodeError as error:
            raise ItemError(
                "PARSE_ERROR", f"{self._label} is not JSON ({error}): {self.sample}"
            ) from error

    def raise_for_status(self) -> None:
        code = code_of_status(self.status, throttled=self.throttled)
        if code is None:
            return
        message = f"{self._label}: {phrase_of_status(self.status)}"
        if self.content:
            message += f": {self.sample}"
        raise ItemError(code, message, retry_after=self.retry_after)

    @property
    def sample(self) -> str:
        """The beginning of the body, for messages."""
        beginning = " ".join(
            self.content[: 4 * _SAMPLE_CHARACTERS].decode("utf-8", "replace").split()
        )
        more = len(beginning) > _SAMPLE_CHARACTERS or len(self.content) > 4 * _SAMPLE_CHARACTERS
        return repr(beginning[:_SAMPLE_CHARACTERS] + ("…" if more else ""))

    @property
    def _label(self) -> str:
        """The URL without its query, which may contain a key."""
        return self.url.partition("?")[0]

    def _charset(self) -> str | None:
        found = _CHARSET.search(self.headers.get("content-type", ""))
        if found is None:
            return None
        return codec_named(found[1])
