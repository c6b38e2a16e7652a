"""The README's first pipeline and its command, as written there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from python_calamine import CalamineWorkbook

from tests.cli.desk import Desk
from tests.world import World, json_answer

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_first_pipeline_of_the_readme_runs(desk: Desk) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    (command,) = re.findall(r"^holdfast (run .*)$", README, re.M)
    desk.write("products.csv", "title\nchair\nunicorn\n")
    async with World() as world:
        offers = [{"price": 12, "shop": "A"}, {"price": 9, "shop": "B"}]
        world.on(
            "/search",
            lambda request: json_answer(
                {"offers": offers if request.query["q"] == "chair" else []}
            ),
        )
        desk.write("prices.py", code.replace("https://shop.example/search", world.url("/search")))
        done = await asyncio.to_thread(desk.holdfast, *command.split())
    assert done.returncode == 0, done.stderr
    sheet = CalamineWorkbook.from_path(desk.folder / "prices.xlsx").get_sheet_by_index(0)
    assert sheet.to_python()[1:] == [
        [1, "chair", 9, "B", "DONE", ""],
        [2, "", "", "", "NOT_FOUND", ""],
    ]
