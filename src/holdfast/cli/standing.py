"""`holdfast open`: a standing job, which accepts records at any time."""

from __future__ import annotations

import structlog
import typer

from holdfast.cli.arguments import OPTION, PIPELINE, parse_options
from holdfast.cli.composition import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.output import errors
from holdfast.cli.pipelines import load_pipeline
from holdfast.engine.control import Control
from holdfast.options import checked_options


def register(app: typer.Typer) -> None:
    app.command("open")(open_job)


def open_job(pipeline: str = PIPELINE, option: list[str] = OPTION) -> None:
    """Open the standing job of a pipeline, which accepts records at any time and does not end.

    There is one for each pipeline and owner: a second `holdfast open` shows the first one's
    number. Applications add records with `holdfast.enqueue`.
    """
    settings = settings_from_environment()
    recipe = load_pipeline(pipeline, settings)
    options = checked_options(recipe.name, recipe.options, parse_options(option))
    ensure_schema(settings)

    async def main() -> tuple[int, bool]:
        async with opened_store(settings) as store:
            control = Control(store, settings.owner, structlog.get_logger())
            return await control.open(recipe, options)

    job_id, is_new = run_async(main())
    done = "is open" if is_new else "was open already"
    errors.print(f"Job {job_id} of {recipe.name} {done}.", markup=False)
