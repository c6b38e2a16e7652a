"""What the API is made of. The composition root builds it; nothing here reads the environment."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.api.middleware import AllowedNames
from holdfast.clock import Clock
from holdfast.console import Console
from holdfast.console.accounts import Accounts
from holdfast.console.operation_runner import AttemptLimits
from holdfast.console.second_factors import SecondFactors
from holdfast.engine.control import Control
from holdfast.engine.pace.backpressure import Backpressure
from holdfast.engine.record.uploads import UploadParts
from holdfast.engine.worker import Worker
from holdfast.flags import ServedFlag
from holdfast.observe.health import MetricsAccess
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Fetch, Pipeline
from holdfast.store import Store


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """Values, not settings: the composition root reads those."""

    allowed_hosts: AllowedNames
    https: bool
    hsts_seconds: int
    metrics_access: MetricsAccess
    owner: str  # of jobs that no person asked for
    max_upload_bytes: int
    max_body_bytes: int
    max_input_bytes: int
    max_workbook_bytes: int
    file_roots: tuple[Path, ...]
    kickoff_max_seconds: float
    session_seconds: float
    worker_lost_seconds: float
    backfill_enabled: bool
    attempt_limits: AttemptLimits
    flags: Mapping[str, ServedFlag]


@dataclass(frozen=True, slots=True)
class Parts:
    store: Store
    console: Console
    pipelines: Mapping[str, Pipeline]
    accounts: Accounts
    second_factors: SecondFactors
    options: ApiOptions
    files: Path  # where uploads and exports lie
    secret: bytes
    uploads: UploadParts
    new_worker: Callable[[int], Worker]  # a worker for one job, for a slice within a request
    backpressure: Backpressure
    new_name: Callable[[], str]  # a worker's name that nobody has had
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any

    @property
    def fetch(self) -> Fetch:
        """Reads with a named query: how the pages of an extension read its tables."""
        return self.store.fetch

    def control(self, name: str) -> Control:
        """What the person of that name may order."""
        return Control(self.store, name, self.log)
