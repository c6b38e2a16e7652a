"""What an extension is: one folder with a pipeline and everything that belongs to it.

The folder's `__init__.py` describes it once, and imports nothing else of it:

    EXTENSION = Extension(
        name="weather",
        package=__name__,
        help="Readings of weather stations.",
        pipeline="pipeline:Weather",
        options="options:WeatherOptions",
        commands="commands:app",
    )

The package announces it as an entry point, in its pyproject.toml:

    [project.entry-points."holdfast.pipelines"]
    weather = "holdfast_weather:EXTENSION"

Parts are named as MODULE:NAME within the package and imported when they are used, so a command
imports only the extension that it needs. Found by convention, where the package has them: `sql/`,
`schema/` and `docs/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from holdfast.errors import PipelineError, SettingsError
from holdfast.flags import FlagSpec as FlagSpec
from holdfast.pipeline import Pipeline

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "holdfast.pipelines"
CORE = "core"  # name of the program's own part in lists that also have extensions
PARTS = ("pipeline", "options", "commands", "web", "metrics", "demo", "consumers")

_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_PART = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*\Z")

#: event -> (what happened, its fields)
Events = Mapping[str, tuple[str, tuple[str, ...]]]


@dataclass(frozen=True, slots=True)
class Extension:
    """A pipeline and its parts, of this repository or of anybody else."""

    name: str  # also the name of its pipeline; prefix of its tables, queries, settings and events
    package: str
    help: str  # for `holdfast --help`, which does not import the commands
    pipeline: str  # the Pipeline class; called with the options, if it has any
    options: str | None = None  # a frozen dataclass of `setting(...)` fields
    commands: str | None = None  # a typer.Typer: `holdfast NAME ...`
    web: str | None = None  # a PagePack: routes, pages, templates, static files, navigation
    metrics: str | None = None  # declare(metrics); what it returns becomes `Pipeline.metrics`
    demo: str | None = None  # a DemoPart: what `holdfast up --demo` adds
    consumers: str | None = None  # QueueConsumers: other programs' queues that its workers read
    events: Events = field(default_factory=lambda: MappingProxyType({}))  # log events: NAME.verb
    flags: tuple[FlagSpec, ...] = ()
    starts_off: bool = False  # no jobs until an admin switches on the flag NAME_enabled

    def __post_init__(self) -> None:
        if not _NAME.match(self.name) or self.name == CORE:
            raise PipelineError(
                f"an extension cannot be named {self.name!r}",
                "A name is lower-case letters, digits and _, begins with a letter and is not core.",
            )
        for part in PARTS:
            reference = getattr(self, part)
            if reference is not None and not _PART.match(reference):
                raise PipelineError(
                    f"the {part} of the extension {self.name} cannot be {reference!r}",
                    "Write MODULE:NAME, within the package: commands:app.",
                )
        self._check_prefixes()

    def _check_prefixes(self) -> None:
        for event in self.events:
            if not event.startswith(f"{self.name}."):
                raise PipelineError(
                    f"the event {event!r} of the extension {self.name} has no prefix",
                    f"Name it {self.name}.SOMETHING.",
                )
        for flag in self.flags:
            if not flag.name.startswith(f"{self.name}_"):
                raise PipelineError(
                    f"the flag {flag.name!r} of the extension {self.name} has no prefix",
                    f"Name it {self.name}_SOMETHING.",
                )

    @property
    def enabled_by(self) -> str | None:
        """The flag that switches it on, if it is off at first."""
        return f"{self.name}_enabled" if self.starts_off else None

    @property
    def all_flags(self) -> tuple[FlagSpec, ...]:
        if self.enabled_by is None:
            return self.flags
        return (FlagSpec(self.enabled_by, f"New jobs of {self.name}.", default=False), *self.flags)

    def load(self, part: str) -> Any:
        """Imports a part; None if the extension does not have it."""
        reference = getattr(self, part)
        if reference is None:
            return None
        module, _, attribute = reference.partition(":")
        try:
            return getattr(import_module(f"{self.package}.{module}"), attribute)
        except Exception as error:
            raise self._broken(f"its {part}, {reference}, cannot be imported", error) from error

    def make(self, options: Any = None) -> Pipeline:
        """Creates its pipeline with the values of its settings."""
        kind = self.load("pipeline")
        try:
            made = kind() if self.options is None else kind(options)
        except SettingsError:
            raise
        except Exception as error:
            raise self._broken("its pipeline cannot be created", error) from error
        if not isinstance(made, Pipeline) or made.name != self.name:
            raise PipelineError(
                f"the extension {self.name} of {self.package} has no pipeline {self.name!r}",
                f"{self.pipeline} must be a Pipeline whose name is {self.name!r}.",
            )
        made.extension = self.name
        made.enabled_by = self.enabled_by
        return made

    def _broken(self, what: str, error: Exception) -> PipelineError:
        return PipelineError(
            f"the extension {self.name} of {self.package} is broken: {what}: "
            f"{type(error).__name__}: {error}",
            "Update the package or uninstall it.",
        )


@cache
def installed() -> Mapping[str, Extension]:
    """Returns every installed extension, by name.

    The manifests are imported, their parts are not."""
    from importlib.metadata import entry_points

    return MappingProxyType(gathered(entry_points(group=GROUP)))


def merged_events(core: Events, extensions: Iterable[Extension]) -> dict[str, Any]:
    """Returns the log events of the core and of extensions. Duplicate names are refused."""
    events = dict(core)
    for extension in extensions:
        for event, description in extension.events.items():
            if event in events:
                raise PipelineError(
                    f"the event {event} of the extension {extension.name} already exists",
                    "Rename the extension.",
                )
            events[event] = description
    return events


def gathered(points: Iterable[EntryPoint]) -> dict[str, Extension]:
    extensions: dict[str, Extension] = {}
    for point in sorted(set(points), key=lambda point: (point.name, point.value)):
        extension = _load(point)
        if extension.name in extensions:
            packages = f"{extensions[extension.name].package} and {extension.package}"
            raise PipelineError(
                f"two extensions are named {extension.name!r}: {packages}", "Uninstall one of them."
            )
        extensions[extension.name] = extension
    return extensions


def _load(point: EntryPoint) -> Extension:
    package = point.dist.name if point.dist is not None else point.value
    try:
        extension = point.load()
    except PipelineError as error:
        raise PipelineError(
            f"the extension {point.name} of the package {package}: {error.message}", error.hint
        ) from error
    except Exception as error:
        raise PipelineError(
            f"the extension {point.name} of the package {package} cannot be imported: "
            f"{type(error).__name__}: {error}",
            "Update the package or uninstall it.",
        ) from error
    if not isinstance(extension, Extension) or extension.name != point.name:
        raise PipelineError(
            f"the entry point {point.name} of the package {package} is not an Extension of that "
            "name",
            f"{point.value} must be Extension(name={point.name!r}, ...).",
        )
    return extension
