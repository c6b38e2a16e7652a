"""The settings of linker, and the options of its jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import orjson

from holdfast.errors import InputError, UserError
from holdfast.options import Option
from holdfast.pipeline import Gate
from holdfast.settings import setting
from holdfast_linker.entries import ColumnMapping, parse_mapping
from holdfast_linker.scoring import Thresholds
from holdfast_linker.wikidata import URL, Api, user_agent

WIKIDATA = "wikidata"
_DEFAULTS = Thresholds()
_LEAST_WAIT = 0.25
_MOST_SEARCHES = 64
_WIKIMEDIA = (".wikidata.org", ".wikimedia.org", ".wikipedia.org")


@dataclass(frozen=True, slots=True)
class LinkerOptions:
    wikidata_url: str = setting(URL, "Address of Wikidata's Action API, or of another Wikibase.")
    contact: str = setting(
        "",
        "Address or URL that Wikimedia can write to; sent in the User-Agent. Required for"
        " Wikidata itself.",
        kind="header",
        shown="none",
    )
    spacing_seconds: float = setting(
        0.2, "Shortest time between two requests to a provider, across all workers.", 0, 3600
    )
    concurrency: int = setting(
        2,
        "Maximum number of requests to a provider at once, across all workers; fewer after a 429.",
        1,
        100,
    )
    maxlag_seconds: int = setting(
        5, "Requests wait while Wikidata's servers lag behind by this much.", 1, 3600
    )
    cache_seconds: float = setting(86_400, "How long look-ups are cached.", 1, 366 * 86_400)
    batch_wait_seconds: float = setting(
        0.0,
        "How long look-ups of several entries are collected into one request. 0: as long as ten"
        " requests take by the spacing, and at least a quarter of a second.",
        0,
        60,
    )
    reconcile_batch: int = setting(
        50, "Maximum number of queries in one request to the Reconciliation server.", 1, 1000
    )
    quota_projects: int = setting(
        1_000, "Maximum number of projects per owner, for new ones created over HTTP.", 0, 10**12
    )
    timeout_seconds: float = setting(
        600.0, "Time limit for one entry, including its waits for the gate.", 1, 3600
    )

    @property
    def wikidata_host(self) -> str:
        """The host of Wikidata, as its gate is named."""
        return urlsplit(self.wikidata_url).netloc.lower()

    @property
    def wikidata_gate(self) -> Gate:
        return self._gate(self.wikidata_host)

    def service_gate(self, url: str) -> Gate:
        """Returns the gate of a Reconciliation service.

        Anyone may name any host as one, so this gate is separate from that of the host, whose
        limits may be another pipeline's."""
        return self._gate(f"linker: {urlsplit(url).netloc.lower()}")

    def _gate(self, name: str) -> Gate:
        """Returns a gate with the spacing, and the same rate as a budget: a throttle lowers it by a
        fifth, and it grows back while there is none."""
        spacing, period = self.spacing_seconds, max(1.0, 10 * self.spacing_seconds)
        return Gate(
            name,
            spacing=spacing,
            concurrency=self.concurrency,
            requests=max(1, round(period / spacing)) if spacing else 0,
            period=period,
        )

    @property
    def batch_seconds(self) -> float:
        """How long look-ups are collected: one request less is worth some waiting, because the rate
        is the bottleneck."""
        return self.batch_wait_seconds or max(_LEAST_WAIT, 10 * self.spacing_seconds)

    @property
    def searches_at_once(self) -> int:
        """The number of searches that pass the gate in two seconds: more would wait for nothing."""
        if not self.spacing_seconds:
            return _MOST_SEARCHES
        return max(2, min(_MOST_SEARCHES, int(2 / self.spacing_seconds)))

    def api(self, language: str) -> Api:
        return Api(
            url=self.wikidata_url,
            language=language,
            maxlag_seconds=self.maxlag_seconds,
            user_agent=self._user_agent(),
        )

    def lacks_contact(self, provider: str) -> bool:
        """Whether a contact is missing: Wikimedia refuses clients that do not say who they are."""
        host = f".{self.wikidata_host}"
        return provider == WIKIDATA and host.endswith(_WIKIMEDIA) and not self.contact.strip()

    def require_contact(self, provider: str) -> None:
        if self.lacks_contact(provider):
            raise UserError(
                "Wikimedia asks for a contact in every request",
                "Set HOLDFAST_LINKER_CONTACT to an e-mail address or a URL.",
            )

    def _user_agent(self) -> str | None:
        if not self.contact.strip():
            return None
        from importlib.metadata import version

        return user_agent(f"holdfast/{version('holdfast')}", self.contact, f"h11/{version('h11')}")


#: Options of a job.
JOB_OPTIONS = (
    Option("project", int, default=0, help="Project whose entries these are; 0: none."),
    Option("dataset", int, default=0, help="Dataset of the project; 0: none."),
    Option("provider", default=WIKIDATA, help="wikidata, or the URL of a Reconciliation service."),
    Option("mapping", default="", help="Which column says what, as JSON. Empty: guessed by name."),
    Option("language", default="en", help="Language of labels, such as en."),
    Option("candidates", int, default=10, help="Maximum number of candidates kept for an entry."),
    Option(
        "auto_accept",
        float,
        default=_DEFAULTS.auto_accept,
        help="Score above which a candidate may be accepted without a person; 101: never.",
    ),
    Option(
        "lead",
        float,
        default=_DEFAULTS.lead,
        help="How far it has to lead the next candidate.",
    ),
)


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """How the entries of a job are matched. Equal options give the same object."""

    project: int
    dataset: int
    provider: str
    language: str
    candidates: int
    thresholds: Thresholds
    mapping: ColumnMapping | None  # None: guessed from the columns of each row


def rules_of(options: Mapping[str, Any]) -> Rules:
    given = {option.name: options.get(option.name, option.default) for option in JOB_OPTIONS}
    return _rules(**given)


@lru_cache(maxsize=64)
def _rules(
    project: int,
    dataset: int,
    provider: str,
    mapping: str,
    language: str,
    candidates: int,
    auto_accept: float,
    lead: float,
) -> Rules:
    if not 1 <= candidates <= 50:
        raise UserError(f"{candidates} candidates cannot be kept", "Give a number from 1 to 50.")
    return Rules(
        project,
        dataset,
        checked_provider(provider),
        language,
        candidates,
        Thresholds(auto_accept=auto_accept, lead=lead),
        read_mapping_text(mapping) if mapping else None,
    )


def checked_provider(provider: str) -> str:
    if provider == WIKIDATA:
        return provider
    try:
        parts = urlsplit(provider)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an address or a port that is impossible
        usable = False
    if not usable:
        raise UserError(
            f"{provider[:100]!r} is not a provider",
            "Give `wikidata`, or the http(s) URL of a Reconciliation service.",
        )
    if "@" in parts.netloc:
        raise UserError(
            "the address of a provider has no name and password",
            "Everyone who sees the project would see them.",
        )
    return provider


def read_mapping_text(text: str) -> ColumnMapping:
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InputError(f"the mapping is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError("the mapping is not a JSON object", 'Write it so: {"name": "Full name"}.')
    return parse_mapping(given)


def mapping_text(mapping: ColumnMapping) -> str:
    return orjson.dumps(mapping.to_json(), option=orjson.OPT_SORT_KEYS).decode()
