"""Compares the commands of a program with the sections of a page that describe them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Name -> command, those of groups included."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def sections_of(page: str) -> list[str]:
    """Those that show how a command is written."""
    return [section for section in page.split("\n## ")[1:] if "```\nholdfast " in section]


def options_of(command: Any) -> set[str]:
    visible = [each for each in command.params if not getattr(each, "hidden", False)]
    names = [name for each in visible for name in (*each.opts, *each.secondary_opts)]
    return {name for name in names if name.startswith("--")} - {"--help"}


def undescribed_options(name: str, command: Any, sections: list[str]) -> set[str]:
    matching = [each for each in sections if re.search(rf"^holdfast {name}(?![\w-])", each, re.M)]
    assert len(matching) == 1, f"`holdfast {name}` is described in {len(matching)} sections"
    return options_of(command) - set(re.findall(r"--[a-z][a-z-]*", matching[0]))


def unknown_words(section: str, known: dict[str, Any]) -> set[str]:
    """Commands and options that a section describes and the program lacks."""
    described = re.findall(r"^holdfast ([a-z-]+(?: [a-z-]+(?= |$)){0,2})", section, re.M)
    names = {_longest_known(words.split(), known) for words in described}
    options = set().union(*(options_of(known[name]) for name in names & set(known)))
    return (names - set(known)) | (set(re.findall(r"--[a-z][a-z-]*", section)) - options)


def _longest_known(words: list[str], known: dict[str, Any]) -> str:
    names = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
    return next((name for name in names if name in known), words[0])


def unexplained(command: Any) -> list[str]:
    """What of a command has no help."""
    visible = [each for each in command.params if not getattr(each, "hidden", False)]
    silent = [str(each.name) for each in visible if not each.help]
    first_line = (command.help or "").strip().split("\n")[0]
    return silent if first_line.endswith(".") else ["the command", *silent]
