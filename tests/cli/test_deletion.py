"""`holdfast delete`: asks first, continues what was killed, and leaves other jobs alone."""

from __future__ import annotations

import pytest

from tests.cli.desk import UPPER, Desk

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@on_sqlite
def test_job_is_deleted_after_a_question_or_with_yes(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    desk.succeed("run", "upper.py", "in.csv")
    desk.succeed("run", "upper.py", "in.csv", "--new")
    refused = desk.holdfast("delete", "job", "1")
    assert refused.returncode == 1 and "with its 30 items?" in refused.stdout + refused.stderr
    assert len(desk.json("jobs")) == 2
    killed = desk.holdfast(
        "delete", "job", "1", "--yes", env={"HOLDFAST_FAULT": "delete_leftovers/commit"}
    )
    assert killed.returncode < 0
    assert {job["state"] for job in desk.json("jobs")} == {"DELETING", "DONE"}
    desk.succeed("delete", "job", "1", "--yes")
    assert [job["id"] for job in desk.json("jobs")] == [2]
    assert "there is no job 1" in desk.fail("delete", "job", "1", "--yes")
    assert desk.json("show", "2", "--verify")["problems"] == []
    for what in ("file", "export"):
        assert f"{what}s." in desk.succeed("delete", what)
        assert f"there is no {what} 7" in desk.fail("delete", what, "7", "--yes")
    assert "there is no user" in desk.fail("delete", "user", "ada", "--yes")


@on_sqlite
def test_worker_continues_a_deletion_that_was_killed(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    desk.holdfast("delete", "job", "1", "--yes", env={"HOLDFAST_FAULT": "mark_deleting/committed"})
    assert desk.json("jobs")[0]["state"] == "DELETING"
    desk.succeed("run", "upper.py", "in.csv")
    assert [job["id"] for job in desk.json("jobs")] in ([2], [2, 1])
    assert desk.json("show", "2")["counters"]["done"] == 30
