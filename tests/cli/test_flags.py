"""`holdfast flag`."""

from __future__ import annotations

from tests.cli.desk import Desk


def test_flag_is_set_and_listed(desk: Desk) -> None:
    desk.succeed("flag", "set", "pending", "off")
    flags = {flag["name"]: flag for flag in desk.json("flag", "list")}
    assert (flags["pending"]["value"], flags["ingest"]["value"]) == (False, True)
    assert "pending" in desk.succeed("flag", "list")
    assert " on " in desk.succeed("flag", "list")


def test_flag_refuses_what_it_cannot_be(desk: Desk) -> None:
    assert "the flag pending cannot be 'perhaps'" in desk.fail("flag", "set", "pending", "perhaps")
    assert "there is no flag 'other'" in desk.fail("flag", "set", "other", "on")
