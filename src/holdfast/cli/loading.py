"""Finds pipelines: the built-in ones by their names, others in a user's file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from holdfast.errors import PipelineError
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings

_FIRST = """Write one, for example:

    from holdfast import pipeline

    @pipeline(columns=["title"])
    async def titles(row, ctx):
        return {"title": row["title"].strip()}"""


def _meetings(settings: Settings) -> Pipeline:
    from holdfast.pipelines.meetings.options import MeetingsOptions
    from holdfast.pipelines.meetings.pipeline import Meetings

    return Meetings(
        MeetingsOptions(
            page_size=settings.api_page_size,
            batch_pages=settings.full_backfill_batch_size,
            months=settings.incremental_backfill_months,
            url_template=settings.meetings_url,
            image_template=settings.meetings_image_url,
            api_key=settings.meetings_api_key or None,
            service_secret=settings.meetings_service_secret or None,
            timeout_seconds=settings.meetings_timeout_seconds,
            rebuild_seconds=settings.meetings_rebuild_seconds,
            max_row_bytes=settings.max_input_bytes,
        )
    )


#: name -> how it is made. Imported only when asked for: most commands need none of them.
BUILT_IN: dict[str, Callable[[Settings], Pipeline]] = {"meetings": _meetings}


def load_pipeline(reference: str, settings: Settings) -> Pipeline:
    """A built-in pipeline, the one pipeline of FILE.py, or the one that FILE.py:name names."""
    if reference in BUILT_IN:
        return BUILT_IN[reference](settings)
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


def load_all(references: Sequence[str], settings: Settings) -> dict[str, Pipeline]:
    """Every pipeline that the references name; a file without a name gives all of its own."""
    loaded: dict[str, Pipeline] = {}
    for reference in references:
        path, wanted = split_reference(reference)
        if wanted or reference in BUILT_IN:
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
            "Name a Python file with a pipeline in it, or a built-in pipeline: "
            f"{', '.join(sorted(BUILT_IN))}.",
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
