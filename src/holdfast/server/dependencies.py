"""Lists what the routes and pages depend on. The composition root builds it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.clock import Clock
from holdfast.features.accounts.accounts import Accounts
from holdfast.features.accounts.second_factors import SecondFactors
from holdfast.features.bulk.bulk import Bulk
from holdfast.features.bulk.operation_runner import OperationRunner
from holdfast.features.console import Console
from holdfast.features.deletion.rules import Deletions
from holdfast.features.exports.export_writer import ExportWriter
from holdfast.features.ingestion.adapter_scans import AdapterScans
from holdfast.features.items.item_lists import ItemLists
from holdfast.features.jobs.kickoffs import Kickoffs
from holdfast.features.jobs.live import Feed, Rates
from holdfast.features.jobs.new_jobs import NewJobs
from holdfast.features.library.file_leftovers import FileLeftovers
from holdfast.features.library.file_library import FileLibrary
from holdfast.features.switches.flags import FeatureFlags
from holdfast.kernel import Store
from holdfast.kernel.arrivals.adding import Adding
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.worker.lost_workers import LostWorkers
from holdfast.kernel.worker.own_files import OwnFiles
from holdfast.observe.health import HealthOptions
from holdfast.observe.metrics import Metrics
from holdfast.pipeline import Fetch, Pipeline
from holdfast.server.options import ServerOptions
from holdfast.stored_files import PipelineFiles
from holdfast_client.records import MAX_INPUT_BYTES


@dataclass(frozen=True, slots=True)
class ApiOptions:
    owner: str  # owner of jobs that no person requested
    host: str  # the address that it listens on
    server: ServerOptions
    health: HealthOptions
    max_upload_bytes: int
    session_seconds: float
    backfill_enabled: bool


@dataclass(frozen=True, slots=True)
class Runners:
    """Background work of every process that serves the API."""

    operations: OperationRunner
    exports: ExportWriter
    leftovers: FileLeftovers
    lost_workers: LostWorkers


@dataclass(frozen=True, slots=True)
class Parts:
    store: Store
    console: Console
    pipelines: Mapping[str, Pipeline]
    accounts: Accounts
    second_factors: SecondFactors
    flags: FeatureFlags
    library: FileLibrary
    new_jobs: NewJobs
    scans: AdapterScans
    bulk: Bulk
    deletions: Deletions
    item_lists: ItemLists
    rates: Rates
    feed: Feed
    runners: Runners
    kickoffs: Kickoffs
    options: ApiOptions
    secret: bytes
    name: str  # the name of this process among workers
    new_name: Callable[[], str]  # a unique worker name
    clock: Clock
    rng: random.Random
    metrics: Metrics
    log: Any

    @property
    def fetch(self) -> Fetch:
        """Reads with a named query, as the pages of an extension read its tables."""
        return self.store.fetch

    @property
    def adding(self) -> Adding:
        """Adds records to standing jobs."""
        return Adding(self.store, self.pipelines, MAX_INPUT_BYTES, self.log)

    def files_of(self, pipeline: str) -> PipelineFiles:
        """Returns the pipeline's own files, as it sees them."""
        return OwnFiles(self.library.access, pipeline)

    def control(self, name: str) -> Control:
        """Returns a control that gives orders on behalf of the person of that name."""
        return Control(self.store, name, self.log)
