"""Commands, API and pages change what people set by the rules of the console, never past them."""

from __future__ import annotations

import re
from pathlib import Path

import holdfast

PACKAGE = Path(holdfast.__file__).parent
DOORS = ("api", "pages", "commands")
#: A method of the store or of the engine's control, where the console has a function.
PAST_THE_CONSOLE = re.compile(r"\.(set_flag|set_schedule|remove_schedule)\(|control\b.*\.switch\(")


def test_flags_schedules_and_switches_are_set_by_the_console_alone() -> None:
    doors = ("cli/**/*", "server/*", *(f"features/*/{door}*" for door in DOORS))
    modules = {door: [*PACKAGE.glob(f"{door}.py")] for door in doors}
    assert all(modules.values())
    past = {
        str(path.relative_to(PACKAGE))
        for paths in modules.values()
        for path in paths
        if PAST_THE_CONSOLE.search(path.read_text())
    }
    assert past == set()
