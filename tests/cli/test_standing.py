"""`holdfast open` and `add`, and workers that end when nothing is open."""

from __future__ import annotations

from tests.cli.desk import UPPER, Desk


def test_records_are_added_to_a_standing_job_and_worked_off(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write("more.jsonl", '{"title": "oak"}\n{"title": "elm"}\n{"title": "oak"}\n')
    desk.succeed("open", "upper.py")
    assert "there is no job 9" in desk.fail("add", "9", "more.jsonl")
    desk.succeed("open", "upper.py")
    assert [job["idle"] for job in desk.json("jobs")] == [True]
    desk.succeed("add", "1", "more.jsonl", "--key", "title")
    desk.succeed("add", "1", "more.jsonl", "--key", "title")
    desk.succeed("work", "upper.py", "--until-idle")
    shown = desk.show()
    assert (shown["state"], shown["idle"], shown["problems"]) == ("RUNNING", True, [])
    assert shown["counters"]["done"] == 2
