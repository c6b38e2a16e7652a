"""A user's own pipeline that plans and concludes, run from its file by command line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import holdfast
from tests.cli.desk import UPPER, Desk, wait_until

ROOT = Path(__file__).parents[2]
EXAMPLE = (ROOT / "examples" / "stations.py").read_text()
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

#: The same, but a reading waits for the file `go`; those of the station `broken` are rejected.
WAITING = (
    EXAMPLE.replace(
        "        return row\n",
        """        import asyncio
        from pathlib import Path
        if row["station"] == "broken":
            raise Failed("PARSE_ERROR", "it is broken")
        Path(__file__).with_name("started").touch()
        while not Path(__file__).with_name("go").exists():
            await asyncio.sleep(0.02)
        return row
""",
    )
    .replace("import Page", "import Failed, Page")
    .replace('"hill": [17, 19]', '"broken": [1]')
)


def jobs_named(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^Job (\d+) ", text, re.MULTILINE)]


def test_planning_pipeline_runs_from_a_file(desk: Desk) -> None:
    desk.write("stations.py", EXAMPLE)
    done = desk.holdfast("run", "stations.py")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines == [["station", "decision"], ["harbour", "start"], ["hill", "start"]]
    assert jobs_named(done.stderr) == [1, 2]
    assert [desk.show(job)["state"] for job in (1, 2)] == ["DONE", "DONE"]
    assert [result["degrees"] for result in desk.results(1)] == [21, 22, 24]

    again = desk.holdfast("run", "stations.py", "--option", "station=hill")
    assert again.returncode == 0, again.stderr
    assert jobs_named(again.stderr) == [3]


@on_sqlite
def test_one_of_several_pipelines_of_a_file(desk: Desk) -> None:
    desk.write("many.py", EXAMPLE + UPPER.replace("\n    ", "\n"))
    done = desk.holdfast("run", "many.py:stations")
    assert done.returncode == 0, done.stderr
    assert jobs_named(done.stderr) == [1, 2]


@on_sqlite
def test_conclusion_that_proves_nothing_fails_the_run(desk: Desk) -> None:
    desk.write("stations.py", EXAMPLE.replace("stored < expected", "stored < 3"))
    done = desk.holdfast("run", "stations.py")
    assert done.returncode == 1
    assert "2 of 2 readings are stored" in done.stderr
    assert desk.holdfast("run", "stations.py", "--option", "station=hill").returncode == 1


@on_sqlite
def test_jobs_are_left_to_others_without_work(desk: Desk) -> None:
    desk.write("stations.py", EXAMPLE)
    desk.succeed("run", "stations.py", "--no-work")
    assert desk.show(1)["state"] == "RUNNING"
    assert "already running" in desk.succeed("run", "stations.py", "--no-work")


@on_sqlite
def test_answer_of_any_form_is_shown(desk: Desk) -> None:
    answers = {"None": "Nothing to do", "[]": "Nothing to do", "{'a': [1]}": '"a"', "'x'": '"x"'}
    for answer, shown in answers.items():
        desk.write(
            "stations.py", EXAMPLE.replace("Planned(orders, answer)", f"Planned([], {answer})")
        )
        done = desk.holdfast("run", "stations.py")
        assert done.returncode == 0, done.stderr
        assert shown in done.stdout + done.stderr


@on_sqlite
@pytest.mark.parametrize("arguments", [["input.csv"], ["--out", "out.csv"]])
def test_input_and_output_are_refused(desk: Desk, arguments: list[str]) -> None:
    desk.write("stations.py", EXAMPLE)
    desk.write_rows("input.csv", 1)
    assert "accepts neither an input nor --out" in desk.fail("run", "stations.py", *arguments)


def test_jobs_of_others_do_not_count(desk: Desk) -> None:
    """Made while the run works: a job of another pipeline that stays open, and one of another
    owner whose rows are rejected."""
    desk.write("stations.py", WAITING)
    desk.write("upper.py", UPPER)
    desk.write_rows("titles.csv", 2)
    running = desk.start("run", "stations.py", "--option", "station=harbour")
    wait_until((desk.folder / "started").exists)
    desk.succeed("run", "upper.py", "titles.csv", "--no-work")
    eve = {"HOLDFAST_OWNER": "eve"}
    desk.succeed("run", "stations.py", "--option", "station=broken", "--no-work", env=eve)
    (desk.folder / "go").touch()
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 0, errors
    assert jobs_named(errors) == [1]
    assert desk.show(2)["state"] == "RUNNING"


def test_types_of_plans_are_exported() -> None:
    names = ("Start", "Resume", "Mark", "Planned", "Act", "Verified", "Reopen", "Unproven")
    for name in (*names, "StreamStatus", "Conclusion"):
        assert hasattr(holdfast, name) and name in holdfast.__all__


def test_page_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs" / "how-to" / "write-a-pipeline-class.md").read_text()
    assert EXAMPLE.split('"""', 2)[2].strip() in page
