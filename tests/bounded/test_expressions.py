"""Every regular expression of the source takes time in proportion to its text."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bounded.expressions import BUILT, USES, expressions

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "bounded-parsing.md"
#: For all texts of an expression, of a megabyte each. Quadratic time would take hours.
CPU_SECONDS = 20

PROGRAM = """
import json, re, resource, sys
task = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_CPU, (task["seconds"], task["seconds"]))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
for pattern, binary, flags in task["patterns"]:
    compiled = re.compile(pattern.encode("latin-1") if binary else pattern, flags)
    for once, repeated in task["worst"]:
        text = (once + repeated * (task["most"] // len(repeated)))[: task["most"]]
        for whole in (text, text + "!"):
            given = whole.encode("latin-1") if binary else whole
            call = getattr(compiled, task["method"])
            if task["method"] == "sub":
                call(given[:0], given)
            else:
                call(given)
"""


def test_every_expression_is_listed_with_its_use() -> None:
    named = {each.name for each in expressions()}
    assert named == set(USES) | set(BUILT)
    assert {each.name for each in expressions() if each.pattern is None} == set(BUILT)


def test_the_page_names_every_expression() -> None:
    page = PAGE.read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE)
    assert sorted(listed) == sorted([*USES, *BUILT])


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("name", USES)
def test_a_megabyte_of_the_worst_text_takes_seconds(name: str) -> None:
    use = USES[name]
    found = [each for each in expressions() if each.name == name and each.pattern is not None]
    task = {
        "patterns": [
            (
                each.pattern.decode("latin-1") if isinstance(each.pattern, bytes) else each.pattern,
                isinstance(each.pattern, bytes),
                flags_of(each.flags),
            )
            for each in found
        ],
        "method": use.method,
        "worst": use.worst,
        "most": use.most,
        "seconds": CPU_SECONDS,
    }
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(task).encode(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()


def flags_of(text: str) -> int:
    names = [part.strip().removeprefix("re.") for part in text.split("|") if part]
    return sum(int(getattr(re, name)) for name in names)
