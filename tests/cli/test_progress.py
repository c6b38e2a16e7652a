"""The live display of a run, on a terminal and in a log."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess

import pytest

from tests.cli.desk import QUICK, SLOW, Desk, stop, wait_until
from tests.command import command_line

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def run_on_a_terminal(desk: Desk, *arguments: str) -> tuple[int, str]:
    """Exit code and everything that was shown, without the terminal's escapes."""
    ours, theirs = pty.openpty()
    environment = desk.command.environment({**QUICK, "TERM": "xterm"})
    process = subprocess.Popen(
        command_line(arguments), cwd=desk.folder, env=environment, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(ours)
    return process.wait(30), ESCAPES.sub("", shown.decode())


def test_terminal_shows_rate_time_left_counts_and_a_summary(desk: Desk) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", "0.05")
    desk.write_rows("in.csv", 400)
    code, shown = run_on_a_terminal(desk, "run", "slow.py", "in.csv")
    assert code == 0, shown
    assert re.search(r"\d+ of 400 · [1-9]\d*/s · \d+ s left", shown)
    assert re.search(r"done [1-9]\d*  not found 0  error 0  skipped 0  open \d+  retries 0", shown)
    assert "Job 1 DONE: 400 accepted, 400 done" in shown
    code, shown = run_on_a_terminal(desk, "items", "1", "--limit", "2")
    assert code == 0
    assert "T0" in shown and "DONE" in shown


def test_log_gets_lines_that_say_what_is_waited_for(desk: Desk) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", "0")
    desk.write_rows("in.csv", 5)
    desk.succeed("run", "slow.py", "in.csv", "--no-work")
    desk.succeed("kill-switch", "on", "--reason", "maintenance")
    process = desk.start("run", "slow.py", "in.csv")
    assert process.stderr is not None
    lines = iter(process.stderr.readline, "")
    waiting = next(line for line in lines if "Waiting" in line)
    assert "0 of 5" in waiting
    assert "kill switch all is on" in waiting and "(maintenance)" in waiting
    assert "\x1b" not in waiting
    wait_until(lambda: desk.reason() == "kill switch")
    code, said = stop(process, signal.SIGTERM)
    assert (code, "Traceback" in said) == (143, False)
