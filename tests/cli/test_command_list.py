"""The list of commands: true, short, and shown without importing what the commands need."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest
import typer

from holdfast.cli.command_list import COMMANDS

#: Beside the longest name and two indents, in 80 columns.
MOST_CHARACTERS = 80 - len("  kill-switch  ")


@pytest.mark.parametrize("module", sorted({listed.module for listed in COMMANDS.values()}))
def test_module_has_exactly_the_commands_listed_for_it(module: str) -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    import_module(module).register(app)
    registered = list(typer.main.get_group(app).commands)
    assert registered == [name for name, listed in COMMANDS.items() if listed.module == module]


@pytest.mark.parametrize("name", COMMANDS)
def test_line_of_a_command_is_not_cut(name: str) -> None:
    assert len(COMMANDS[name].line) <= MOST_CHARACTERS


def test_help_imports_neither_database_nor_engine_nor_server() -> None:
    script = (
        "import sys\n"
        "from holdfast.cli.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = ('asyncpg', 'fastapi', 'httpx2', 'holdfast.kernel.store', 'holdfast.server')\n"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert "..." not in done.stdout.partition("Commands:")[2]
