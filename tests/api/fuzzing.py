"""Requests made up from the OpenAPI document, those that fit it and those that do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

#: Never ends: what is looked at is how it begins.
ENDLESS = "GET /api/events"
#: Tried by somebody who may be shut out by them.
SHUT_OUT = {"PUT /api/session/password", "DELETE /api/tokens/{token_id}", "DELETE /api/session"}
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
QUICK = settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@dataclass(frozen=True)
class Fuzzed:
    """A server, a token of an admin, and one of somebody who may be shut out."""

    address: str
    token: str
    spare: str

    def try_all(self, mode: GenerationMode, under: str = "/") -> list[str]:
        """The routes for which there was anything to try: some take nothing, or nothing that is
        wrong."""
        schema = schemathesis.openapi.from_url(
            f"{self.address}/api/openapi.json", headers={"Authorization": f"Bearer {self.token}"}
        )
        operations = [found.ok() for found in schema.get_all_operations()]
        return [
            each.label
            for each in operations
            if each.path.startswith(under) and self._try(each, mode)
        ]

    def _try(self, operation: Any, mode: GenerationMode) -> bool:
        @QUICK
        @given(operation.as_strategy(generation_mode=mode))
        def tried(case: Any) -> None:
            token = self.spare if operation.label in SHUT_OUT else self.token
            self._ask(case, operation.label, {"Authorization": f"Bearer {token}"})

        try:
            tried()
        except Unsatisfiable:
            return False
        return True

    def _ask(self, case: Any, label: str, headers: dict[str, str]) -> None:
        if label == ENDLESS:
            _begin(case, self.address, headers)
            return
        reply = case.call(base_url=self.address, headers=headers, timeout=30)
        # A flag that the fuzzing itself switched off is told as 503.
        assert reply.status_code < 500 or reply.status_code == 503, (label, reply.text)
        case.validate_response(reply, checks=CHECKS)


def _begin(case: Any, address: str, headers: dict[str, str]) -> None:
    asked = case.as_transport_kwargs(base_url=address, headers=headers)
    with requests.request(**asked, stream=True, timeout=30) as reply:
        if reply.status_code == 200:
            assert reply.headers["content-type"].startswith("text/event-stream")
        else:
            case.validate_response(reply, checks=CHECKS)
