"""What a job keeps about its records and where they come from, besides the options that people
set and see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import orjson

from holdfast.columns import Inputs
from holdfast_client.keys import Dedupe as Dedupe


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a job's records come from and how they are read.

    `table` is how the job's file is read (encoding, sheet, names of columns, ...); None if there
    is no file. With `images`, the rows of the file name stored images. A standing job keeps
    `dedupe`, `inputs` and `fed_by_consumers` of its pipeline, for processes that add records
    without having the pipeline.
    """

    pipeline_file: str | None = None  # the Python file that its pipeline is in
    table: Mapping[str, Any] | None = None
    images: bool = False
    dedupe: Dedupe | None = None
    inputs: Inputs = ()  # the fields that the pipeline reads
    fed_by_consumers: bool = False  # accepts records only from the queues of its pipeline
    plan: Mapping[str, Any] = field(default_factory=dict)  # as in `Start`

    @property
    def column_names(self) -> Mapping[str, str]:
        """What the pipeline calls the columns of the job's file, where it differs."""
        names = self.table_options.get("names")
        return names if isinstance(names, Mapping) else {}

    @property
    def read_as(self) -> Sequence[str]:
        """What was detected and assumed about the job's file, in sentences."""
        read_as = self.table_options.get("read_as")
        return read_as if isinstance(read_as, list | tuple) else ()

    @property
    def table_options(self) -> Mapping[str, Any]:
        """How the job's file is read; empty if there is no file, or if another version of the
        program stored something else."""
        return self.table if isinstance(self.table, Mapping) else {}

    def as_json(self) -> str:
        """Returns the text of the column `reading`; values that are the default are left out."""
        values = asdict(self)
        default = asdict(Reading())
        changed = {name: value for name, value in values.items() if value != default[name]}
        return orjson.dumps(changed).decode()


def reading_of(stored: str) -> Reading:
    """Returns a stored reading; what this version does not know is left out."""
    values = orjson.loads(stored)
    if not isinstance(values, dict):
        return Reading()
    names = {known.name for known in fields(Reading)}
    known = {name: value for name, value in values.items() if name in names}
    if known.get("dedupe") is not None:
        known["dedupe"] = Dedupe(**known["dedupe"])
    return Reading(**known)
