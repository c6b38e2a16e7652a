"""What an operator may set about meetings, and the words of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DocumentType(StrEnum):
    AGENDA = "agenda"
    MINUTES = "minutes"


class Mode(StrEnum):
    FULL = "full"
    INCREMENTAL = "incremental"


TABLES = {DocumentType.AGENDA: "agendas", DocumentType.MINUTES: "minutes"}


@dataclass(frozen=True, slots=True)
class MeetingsOptions:
    page_size: int = 1000  # rows asked for at once; the site may give fewer
    batch_pages: int = 10  # most API pages of one slice
    months: int = 6  # an incremental pass looks so far back and ahead
    url_template: str = "https://{subdomain}.civic.band"
    image_template: str = "https://cdn.civic.band/{subdomain}{path}"  # empty: there are none
    api_key: str | None = None
    service_secret: str | None = None
    timeout_seconds: float = 60.0
    rebuild_seconds: float = 60.0  # how long a site is given to bring back what is missing
    max_reply_bytes: int = 64 * 1024 * 1024
    max_row_bytes: int = 10 * 1024 * 1024

    def headers(self) -> dict[str, str]:
        headers = {"accept": "application/json"}
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
    return subdomain, DocumentType(document_type)
