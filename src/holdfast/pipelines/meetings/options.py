"""What an operator may set about meetings, and the words of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.errors import UserError
from holdfast.pipelines.meetings.secret_hosts import receives_secrets
from holdfast.settings import setting

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
        "Rows that one request asks a Datasette site for; it may return fewer.",
        1,
        100_000,
        alias="API_PAGE_SIZE",
    )
    batch_pages: int = setting(
        10,
        "Most API pages that one slice of a backfill walks.",
        1,
        1_000_000,
        alias="FULL_BACKFILL_BATCH_SIZE",
    )
    months: int = setting(
        6,
        "How many months back and ahead an incremental pass reads.",
        1,
        1200,
        alias="INCREMENTAL_BACKFILL_MONTHS",
    )
    url: str = setting(
        "https://{subdomain}.civic.band", "Where a municipality's site is, unless it says so."
    )
    image_url: str = setting("https://cdn.civic.band/{subdomain}{path}", "Where a page's image is.")
    api_key: str = setting("", "The upstream's API key.", kind="header", secret=True, shown="none")
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
        "What a webhook has to send; without it, every webhook is refused.",
        alias="WEBHOOK_SECRET",
        kind="header",
        secret=True,
        shown="none",
    )
    webhook_signed: bool = setting(
        False, "Accept only webhooks that are signed: the secret alone is not enough then."
    )
    timeout_seconds: float = setting(60.0, "Longest wait for a page of a site.", 0.01, 3600)
    rebuild_seconds: float = setting(
        60.0, "How long a site is given to restore a table or rows that are missing.", 0, 3600
    )
    max_reply_bytes: int = setting(64 * MIB, "Largest page of a site.", 1024, 1024 * MIB)
    max_row_bytes: int = setting(
        10 * MIB,
        "Largest row of a site; a larger one is rejected.",
        1,
        1024 * MIB,
        follows="max_input_bytes",
    )

    def headers(self, url: str) -> dict[str, str]:
        """What is sent to a site; the secrets only to hosts that settings name."""
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
    """The documents of one type of one municipality: what one stream walks."""

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
        """As the options of a job name it."""
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
