"""`holdfast linker`: match the entries of a file, export links."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.foreground import SOME_ITEMS_FAILED
from holdfast.cli.opening import opened_store, ready_settings, run_async, settings_from_environment
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.pipelines import load_pipeline
from holdfast.cli.run import run_request
from holdfast.cli.run_job import Request, open_table
from holdfast.cli.run_planned import make_change
from holdfast.configuration import Settings
from holdfast.errors import InputError, UserError
from holdfast.tables.files import content_key
from holdfast.tables.writers import format_of
from holdfast_linker.entries import ColumnMapping, read_mapping
from holdfast_linker.guessing import guess_mapping, mapping_sentences
from holdfast_linker.linking import require_wikidata, statement_lines
from holdfast_linker.options import mapping_text
from holdfast_linker.projects import Project, find_or_add_dataset, find_or_add_project
from holdfast_linker.quickstatements import Style
from holdfast_linker.reads import LinkerReads
from holdfast_linker.tasks import TaskState

app = typer.Typer(no_args_is_help=True)
_LAST_ID = 2**62
_MOST_PROJECTS = 1000

PROJECT = typer.Argument(..., metavar="PROJECT", help="Name or number of the project.")
MAPPING = typer.Option(
    None,
    "--mapping",
    help="JSON file that maps the columns. Default: columns are recognized by their names.",
)
WORKERS = typer.Option(None, "--workers", min=1, help="Worker processes.")


@app.command("match")
def match(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="CSV, TSV, XLSX or JSON Lines file with one entry per row."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Write the links to this .csv, .xlsx, .json or .jsonl file."
    ),
    provider: str | None = typer.Option(
        None,
        "--provider",
        metavar="wikidata|URL",
        help="Wikidata, or the address of a Reconciliation service. Default: wikidata.",
    ),
    mapping: Path | None = MAPPING,
    name: str | None = typer.Option(None, "--name", help="Column with the names."),
    of_type: str | None = typer.Option(
        None, "--type", help="What all entries are instances of, such as Q5 (human)."
    ),
    project: str | None = typer.Option(
        None, "--project", help="Name of the project. Default: the name of the file."
    ),
    language: str | None = typer.Option(
        None, "--language", help="Language of labels. Default: en."
    ),
    auto_accept: float | None = typer.Option(
        None,
        "--auto-accept",
        help="Score above which a match needs no review; 101: review all. Default: 95.",
    ),
    new: bool = typer.Option(False, "--new", help="Start a new job instead of continuing one."),
    workers: int | None = WORKERS,
    work: bool = typer.Option(
        True, "--work/--no-work", help="--no-work: leave it to workers that are already running."
    ),
) -> None:
    """Match the entries of a file and write the links.

    Stop it with Ctrl-C, a power cut or kill -9: the same command continues where it stopped.
    Entries that are not certain wait for review on the page of the project.

    Exit codes: 0 finished; 3 finished, but some entries could not be matched because of an error;
    1 not finished; 130 or 143 stopped by Ctrl-C or SIGTERM.
    """
    settings = settings_from_environment()
    columns = _mapping_of(file, settings, mapping, name, of_type)
    given = {"provider": provider, "language": language, "auto_accept": auto_accept}
    rules = {option: value for option, value in given.items() if value is not None}
    if out is not None:
        format_of(out, None)  # refuses the format before anything is created
    found = _project(settings, project or file.stem, rules)
    change = find_or_add_dataset(found, file.name, columns, content_key(file), new=new)
    dataset_id = make_change(settings, "linker", change)
    options = found.job_options(mapping_text(columns), dataset_id)
    request = _request(settings, file, options, workers)
    code = run_request(settings, replace(request, out=out, new=new, work=work))
    if code in (0, SOME_ITEMS_FAILED):
        _print_summary(settings, found)
    raise typer.Exit(code)


def _print_summary(settings: Settings, project: Project) -> None:
    """Prints what became of the entries, and how to decide about those that are not certain."""

    async def main() -> dict[str, int]:
        async with opened_store(settings) as store:
            return await LinkerReads(store.fetch).counts(project.id)

    counts = run_async(main())
    parts = [f"{counts[state]:,} {state.replace('_', ' ')}" for state in counts if counts[state]]
    errors.print(f"Project {project.name}: {', '.join(parts) or 'no entries'}.", markup=False)
    if counts[TaskState.AWAITING_REVIEW]:
        errors.print("Review them on the page Linker, which `holdfast up linker` serves.")


def _request(
    settings: Settings, file: Path, options: dict[str, Any], workers: int | None
) -> Request:
    return Request(
        reference="linker",
        pipeline=load_pipeline("linker", settings),
        input=file,
        out=None,
        new=False,
        work=True,
        workers=workers or settings.workers,
        table={},
        columns={},
        options=options,
    )


def _project(settings: Settings, name: str, rules: dict[str, Any]) -> Project:
    require_contact = settings.of("linker").require_contact
    change = find_or_add_project(settings.owner, name, rules, require_contact)
    project: Project = make_change(settings, "linker", change)
    errors.print(f"Project {project.id} {project.name}, {project.rules.provider}.", markup=False)
    return project


def _mapping_of(
    file: Path, settings: Settings, given: Path | None, name: str | None, of_type: str | None
) -> ColumnMapping:
    """Returns the mapping from a file, or guessed, and shows it before anything is matched."""
    columns = list(open_table(file, {}, settings).detected.columns)
    if given is not None:
        options = _read_json(given)
    else:
        guessed = guess_mapping(columns)
        if guessed is None and name is None:
            raise InputError(
                f"no column of {file.name} looks like one with names",
                f"Say which with --name or --mapping. Columns: {', '.join(columns[:20])}.",
            )
        options = {} if guessed is None else guessed.to_json()
    options |= {"name": name} if name else {}
    options |= {"all_of_type": of_type} if of_type else {}
    mapping = read_mapping(options, columns)
    for sentence in mapping_sentences(mapping):
        errors.print(f"  {sentence}", markup=False)
    return mapping


def _read_json(path: Path) -> dict[str, Any]:
    try:
        given = orjson.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise InputError(f"{path} is not a JSON object", 'Write it so: {"name": "Full name"}.')
    return given


@app.command("projects")
def projects(as_json: bool = JSON) -> None:
    """List your projects, with their entries by state."""
    settings = ready_settings("linker")

    async def main() -> list[dict[str, Any]]:
        async with opened_store(settings) as store:
            reads = LinkerReads(store.fetch)
            return [
                {
                    "id": project.id,
                    "name": project.name,
                    "provider": project.rules.provider,
                    "states": await reads.counts(project.id),
                }
                for project in await reads.projects(settings.owner, _LAST_ID, _MOST_PROJECTS)
            ]

    listed = run_async(main())
    if as_json:
        print_json(listed)
        return
    rows = [
        (row["id"], row["name"], row["provider"], sum(row["states"].values()),
         row["states"]["auto_confirmed"], row["states"]["reviewed"],
         row["states"]["awaiting_review"], row["states"]["failed"])
        for row in listed
    ]  # fmt: skip
    headers = ("project", "name", "provider", "entries", "accepted", "reviewed", "to review",
               "failed")  # fmt: skip
    empty = f"{settings.owner} has no projects. Create one with: holdfast linker match FILE"
    print_table(headers, rows, empty, right=headers[3:])


@app.command("quickstatements")
def quickstatements(
    project: str = PROJECT,
    out: Path = typer.Option(..., "--out", help="File to write to."),
    stated_in: str | None = typer.Option(
        None, "--stated-in", help="Item that is the source of every statement, such as Q36578."
    ),
) -> None:
    """Write linked entries as QuickStatements.

    What each entry says about its item becomes a statement. Entries for which people decided that
    there is no item yet create one.
    """
    settings = ready_settings("linker")

    async def main() -> int:
        async with opened_store(settings) as store:
            found = await _find(store.fetch, project, settings.owner)
            require_wikidata(found)
            style = _style(found.rules.language, stated_in)
            count = 0
            part = out.with_name(f".{out.name}.part")
            with part.open("w", encoding="utf-8", newline="\n") as lines:
                async with aclosing(statement_lines(store.fetch, found, style)) as written:
                    async for line in written:
                        lines.write(line)
                        count += 1
            part.replace(out)
            return count

    try:
        count = run_async(main())
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}") from None
    errors.print(f"{count:,} lines: {out}", markup=False)


def _style(language: str, stated_in: str | None) -> Style:
    try:
        return Style(language, stated_in=stated_in)
    except ValueError as error:
        raise UserError(str(error)) from None


async def _find(fetch: Any, project: str, owner: str) -> Project:
    rows = await fetch("linker_project_by_name", {"owner_id": owner, "name": project})
    if not rows and project.isascii() and project.isdecimal() and len(project) < 18:
        rows = [
            row
            for row in await fetch("linker_project", {"id": int(project)})
            if row["owner_id"] == owner
        ]
    if not rows:
        raise UserError(f"there is no project {project!r}", "See `holdfast linker projects`.")
    return Project.of(rows[0])
