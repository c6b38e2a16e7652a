"""Finds pipelines by what the command line names: an installed extension, or a Python file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from holdfast.configuration import Settings
from holdfast.errors import PipelineError
from holdfast.extension import installed
from holdfast.pipeline import Pipeline

_FIRST = """Write one, for example:

    from holdfast import pipeline

    @pipeline(columns=["title"])
    async def titles(row, ctx):
        return {"title": row["title"].strip()}"""


def load_pipeline(reference: str, settings: Settings) -> Pipeline:
    """Loads the pipeline of an extension, the only one in FILE.py, or the one named by
    FILE.py:NAME."""
    if is_extension(reference):
        return installed()[reference].make(settings.of(reference))
    path, name = split_reference(reference)
    pipelines = load_pipelines(path)
    names = sorted(pipelines)
    if name:
        if name not in pipelines:
            raise PipelineError(f"{path} has no pipeline {name!r}", f"It has: {', '.join(names)}.")
        return pipelines[name]
    if len(pipelines) > 1:
        raise PipelineError(
            f"{path} has several pipelines: {', '.join(names)}",
            f"Choose one, for example {path}:{names[0]}",
        )
    return pipelines[names[0]]


def is_extension(reference: str) -> bool:
    # Looking for extensions takes as long as importing a small library, so skip it for files.
    return reference.isidentifier() and reference in installed()


def load_all(references: Sequence[str], settings: Settings) -> dict[str, Pipeline]:
    """Loads every pipeline that the references name; FILE.py without a name means all of its
    pipelines."""
    loaded: dict[str, Pipeline] = {}
    for reference in references:
        path, wanted = split_reference(reference)
        if wanted or is_extension(reference):
            pipelines = [load_pipeline(reference, settings)]
        else:
            pipelines = list(load_pipelines(path).values())
        for pipeline in pipelines:
            if pipeline.name in loaded:
                raise PipelineError(f"two pipelines are named {pipeline.name!r}")
            loaded[pipeline.name] = pipeline
    return loaded


def load_pipelines(path: Path) -> dict[str, Pipeline]:
    module = _import(path)
    pipelines: dict[str, Pipeline] = {}
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, Pipeline):
            if value.__module__ != module.__name__:
                continue
            value = _create(value)
        if isinstance(value, Pipeline):
            if pipelines.get(value.name, value) is not value:
                raise PipelineError(f"{path} has two pipelines named {value.name!r}")
            value.file = str(path.resolve())
            pipelines[value.name] = value
    if not pipelines:
        raise PipelineError(f"{path} contains no pipeline", _FIRST)
    return pipelines


def _create(kind: type[Pipeline]) -> Pipeline:
    try:
        return kind()
    except Exception as error:
        raise PipelineError(
            f"the pipeline {kind.__name__} cannot be created: {error}",
            "Its __init__ must work without arguments; use ctx.options for options.",
        ) from error


def path_of(reference: str) -> str:
    """Returns the file or the installed pipeline, without the name of one pipeline in a file."""
    path, name = split_reference(reference)
    return str(path) if name else reference


def split_reference(reference: str) -> tuple[Path, str]:
    path, separator, name = reference.rpartition(":")
    if separator and path.endswith(".py"):
        return Path(path), name
    return Path(reference), ""


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise PipelineError(
            f"there is no file {path}",
            "Give a Python file that contains a pipeline, or an installed pipeline: "
            f"{', '.join(sorted(installed())) or 'none is installed'}.",
        )
    name = f"holdfast_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PipelineError(f"{path} is not a Python file", "Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _add_folder_to_path(path)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}"
        raise PipelineError(f"{where}: {error.msg}", _source_line(error)) from error
    except PipelineError:
        raise
    except SystemExit as error:
        raise PipelineError(
            f"{path} ends the program when it is imported: sys.exit({error.code!r})",
            'Put everything but the pipeline under: if __name__ == "__main__":',
        ) from error
    except Exception as error:
        raise PipelineError(
            f"{path} cannot be imported: {type(error).__name__}: {error}", _line_of(error, path)
        ) from error
    return module


def _add_folder_to_path(path: Path) -> None:
    """Lets the pipeline import files from its folder. The folder comes last, so that a numbers.py
    there does not replace Python's own."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def _source_line(error: SyntaxError) -> str | None:
    return error.text.rstrip() if error.text else None


def _line_of(error: Exception, path: Path) -> str | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return None if line is None else f"See line {line} of {path}."
