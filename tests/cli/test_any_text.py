"""Whatever text a file holds, the result holds."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.desk import Desk
from tests.command import HoldfastCommand

ECHO = """
    from holdfast import pipeline

    @pipeline(columns=["text"])
    async def echo(row, ctx):
        return {"text": row["text"]}
"""
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@settings(max_examples=3, deadline=None)
@given(texts=st.lists(TEXT, min_size=20, max_size=60))
def test_any_text_in_a_csv_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("texts")
    desk = Desk(HoldfastCommand(f"sqlite:///{folder / 'texts.db'}", folder))
    desk.write("echo.py", ECHO)
    with (folder / "in.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([["number", "text"], *enumerate(texts)])
    desk.succeed("run", "echo.py", "in.csv", "--encoding", "utf-8", "--delimiter", ",")
    assert [result["text"] for result in desk.results()] == texts
