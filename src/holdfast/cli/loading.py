"""Finds pipelines: those of installed extensions by name, others in a user's file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from holdfast.errors import PipelineError
from holdfast.extension import installed
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings

_FIRST = """Write one, for example:

    from holdfast import pipeline

    @pipeline(columns=["title"])
    async def titles(row, ctx):
        return {"title": row["title"].strip()}"""


def load_pipeline(reference: str, settings: Settings) -> Pipeline:
    """That of an extension, the one pipeline of FILE.py, or the one that FILE.py:name names."""
    if is_extension(reference):
        return installed()[reference].make(settings.of(reference))
    path, name = split_reference(reference)
    found = load_pipelines(path)
    if name:
        if name not in found:
            raise PipelineError(
                f"{path} has no pipeline {name!r}", f"It has: {', '.join(sorted(found))}."
            )
        return found[name]
    if len(found) > 1:
        names = ", ".join(sorted(found))
        raise PipelineError(
            f"{path} has several pipelines: {names}", f"Choose one: {path}:{sorted(found)[0]}"
        )
    return next(iter(found.values()))


def is_extension(reference: str) -> bool:
    # What cannot be a name is not looked for: that takes as long as importing a small library.
    return reference.isidentifier() and reference in installed()


def load_all(references: Sequence[str], settings: Settings) -> dict[str, Pipeline]:
    """Every pipeline that the references name; a file without a name gives all of its own."""
    loaded: dict[str, Pipeline] = {}
    for reference in references:
        path, wanted = split_reference(reference)
        if wanted or is_extension(reference):
            found = [load_pipeline(reference, settings)]
        else:
            found = list(load_pipelines(path).values())
        for pipeline in found:
            if pipeline.name in loaded:
                raise PipelineError(f"two of the pipelines are named {pipeline.name!r}")
            loaded[pipeline.name] = pipeline
    return loaded


def load_pipelines(path: Path) -> dict[str, Pipeline]:
    module = _import(path)
    found: dict[str, Pipeline] = {}
    for value in list(vars(module).values()):
        if isinstance(value, type) and issubclass(value, Pipeline):
            if value.__module__ != module.__name__:
                continue
            value = _made(value)
        if isinstance(value, Pipeline):
            if found.get(value.name, value) is not value:
                raise PipelineError(f"{path} has two pipelines named {value.name!r}")
            value.file = str(path.resolve())
            found[value.name] = value
    if not found:
        raise PipelineError(f"{path} has no pipeline in it", _FIRST)
    return found


def _made(kind: type[Pipeline]) -> Pipeline:
    try:
        return kind()
    except Exception as error:
        raise PipelineError(
            f"the pipeline {kind.__name__} cannot be made: {error}",
            "Its __init__ must work without arguments; use ctx.options for options.",
        ) from error


def split_reference(reference: str) -> tuple[Path, str]:
    path, separator, name = reference.rpartition(":")
    if separator and path.endswith(".py"):
        return Path(path), name
    return Path(reference), ""


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise PipelineError(
            f"there is no file {path}",
            "Name a Python file with a pipeline in it, or an installed pipeline: "
            f"{', '.join(sorted(installed())) or 'there are none'}.",
        )
    name = f"holdfast_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PipelineError(f"{path} is not a Python file", "Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _import_from_beside(path)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = f"{error.filename}, line {error.lineno}"
        raise PipelineError(f"{where}: {error.msg}", _pointed_at(error)) from error
    except PipelineError:
        raise
    except SystemExit as error:
        raise PipelineError(
            f"{path} ends the program while it is imported: sys.exit({error.code!r})",
            'Put what is not the pipeline under: if __name__ == "__main__":',
        ) from error
    except Exception as error:
        raise PipelineError(
            f"{path} cannot be imported: {type(error).__name__}: {error}", _line_of(error, path)
        ) from error
    return module


def _import_from_beside(path: Path) -> None:
    """The pipeline may import files beside it, also later. They come last: a numbers.py there
    must not stand in for Python's own."""
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)


def _pointed_at(error: SyntaxError) -> str | None:
    return error.text.rstrip() if error.text else None


def _line_of(error: Exception, path: Path) -> str | None:
    trace = error.__traceback__
    line = None
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return None if line is None else f"See line {line} of {path}."
