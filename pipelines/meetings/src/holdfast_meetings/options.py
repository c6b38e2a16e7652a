"""The settings of meetings, and the terms of its domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.errors import UserError
from holdfast.settings import setting
from holdfast_meetings.secret_hosts import receives_secrets

MIB = 1024 * 1024


class DocumentType(StrEnum):
    AGENDA = "agenda"
    MINUTES = "minutes"


class Mode(StrEnum):
    FULL = "full"
    INCREMENTAL = "incremental"


TABLES = {DocumentType.AGENDA: "agendas", DocumentType.MINUTES: "minutes"}


@dataclass(frozen=True, slots=True)
class MeetingsOptions:
    page_size: int = setting(
        1000,
        "Rows per request to a Datasette site, which may return fewer.",
        1,
        100_000,
        alias="API_PAGE_SIZE",
    )
    batch_pages: int = setting(
        10,
        "Maximum number of API pages that one slice of a backfill reads.",
        1,
        1_000_000,
        alias="FULL_BACKFILL_BATCH_SIZE",
    )
    months: int = setting(
        6,
        "Months back and ahead that an incremental pass reads.",
        1,
        1200,
        alias="INCREMENTAL_BACKFILL_MONTHS",
    )
    url: str = setting(
        "https://{subdomain}.civic.band",
        "Address of a municipality's site, unless it has one of its own.",
    )
    image_url: str = setting(
        "https://cdn.civic.band/{subdomain}{path}", "Address of a page's image."
    )
    api_key: str = setting("", "API key of the sites.", kind="header", secret=True, shown="none")
    service_secret: str = setting(
        "", "Sent as `X-Service-Secret` to the sites.", kind="header", secret=True, shown="none"
    )
    secret_hosts: str = setting(
        "",
        "Hosts that receive the key and the secret besides those of `HOLDFAST_MEETINGS_URL`,"
        " separated by commas: `host`, `*.domain`, `host:port`; `http://host` for one without"
        " TLS.",
        shown="none",
    )
    webhook_secret: str = setting(
        "",
        "Secret that a webhook must send; if not set, every webhook is refused.",
        alias="WEBHOOK_SECRET",
        kind="header",
        secret=True,
        shown="none",
    )
    webhook_signed: bool = setting(
        False, "Accept only signed webhooks: the secret alone is not enough then."
    )
    timeout_seconds: float = setting(60.0, "Longest wait for a response of a site.", 0.01, 3600)
    rebuild_seconds: float = setting(
        60.0, "Time a site is given to restore a missing table or missing rows.", 0, 3600
    )
    max_reply_bytes: int = setting(64 * MIB, "Largest response of a site.", 1024, 1024 * MIB)
    max_row_bytes: int = setting(
        10 * MIB,
        "Largest row of a site; larger ones are rejected.",
        1,
        1024 * MIB,
        follows="max_input_bytes",
    )

    def headers(self, url: str) -> dict[str, str]:
        """Returns what is sent to a site; the secrets only to hosts that settings name."""
        headers = {"accept": "application/json"}
        if not receives_secrets(url, self.url, self.secret_hosts):
            return headers
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        if self.service_secret:
            headers["x-service-secret"] = self.service_secret
        return headers


@dataclass(frozen=True, slots=True)
class Collection:
    """The documents of one type of one municipality, read by one stream."""

    municipality_id: int
    subdomain: str
    document_type: DocumentType
    url: str

    @property
    def source(self) -> str:
        return source_of(self.subdomain, self.document_type)

    @property
    def table(self) -> str:
        return TABLES[self.document_type]

    @property
    def params(self) -> dict[str, Any]:
        return {"municipality_id": self.municipality_id, "document_type": self.document_type.value}

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Collection:
        """Reads the collection from the options of a job."""
        return cls(
            int(options["municipality_id"]),
            options["subdomain"],
            DocumentType(options["document_type"]),
            options["url"],
        )


def source_of(subdomain: str, document_type: DocumentType) -> str:
    return f"{subdomain}:{document_type}"


def split_source(source: str) -> tuple[str, DocumentType]:
    subdomain, _, document_type = source.rpartition(":")
    if document_type not in set(DocumentType):
        raise UserError(f"{source!r} is not a source of meetings", "One is e.g. alameda.ca:agenda.")
    return subdomain, DocumentType(document_type)
