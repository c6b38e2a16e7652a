"""Sentiment and intent of posts, on labelled posts."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from bench.quality.posts.measuring import SETS, measure, read_labelled
from holdfast.cli.arguments import JSON
from holdfast.cli.output import print_json, print_table
from holdfast.errors import UserError


def quality(
    file: Path | None = typer.Option(
        None, "--file", help="Your own posts with labels, as a table of tab-separated values."
    ),
    as_json: bool = JSON,
) -> None:
    """Measure sentiment and intent on labelled posts.

    Without --file, on the three sets in bench/quality/posts.
    Prints the macro-F1 of each language beside that of counting words from a list, and of always
    choosing the most frequent label.
    """
    if file is not None and not file.is_file():
        raise UserError(f"there is no file {file}")
    files = SETS if file is None else (file,)
    scores = [
        {"set": path.stem, **asdict(score)}
        for path in files
        for score in measure(read_labelled(path))
    ]
    if as_json:
        print_json(scores)
        return
    names = ("set", "task", "language", "posts", "ours", "words", "majority")
    table = [
        tuple(f"{row[name]:.3f}" if isinstance(row[name], float) else row[name] for name in names)
        for row in scores
    ]
    print_table(names, table, "No posts.", right=names[3:])
