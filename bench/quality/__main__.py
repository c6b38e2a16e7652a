"""`python -m bench.quality catalog|fit|linker|posts`: measures, and prints the figures."""

from __future__ import annotations

import sys

import typer

from bench.quality.catalog.commands import accuracy, fit
from bench.quality.linker.commands import quality as linker_quality
from bench.quality.posts.commands import quality as posts_quality
from holdfast.cli.output import print_error
from holdfast.errors import HoldfastError, UserError

app = typer.Typer(
    help="Measure how good the results of a pipeline are, on lists with known answers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("catalog")(accuracy)
app.command("fit")(fit)
app.command("linker")(linker_quality)
app.command("posts")(posts_quality)


def main() -> None:
    try:
        app(prog_name="python -m bench.quality")
    except HoldfastError as error:
        print_error(str(error), error.hint if isinstance(error, UserError) else None)
        sys.exit(1)


if __name__ == "__main__":
    main()
