"""The files of a pipeline, for its commands."""

from __future__ import annotations

from holdfast.cli.composition import file_access
from holdfast.configuration import Settings
from holdfast.kernel.worker.own_files import OwnFiles
from holdfast.stored_files import PipelineFiles


def pipeline_files(settings: Settings, pipeline: str) -> PipelineFiles:
    return OwnFiles(file_access(settings), pipeline)
