"""Images on the command line: each is an item, as in an upload."""

from __future__ import annotations

import csv
import zipfile

import pytest

from tests.cli.desk import Desk
from tests.pictures import gif, png

SIZES = """
    from holdfast import pipeline

    @pipeline(columns=["name", "bytes"])
    async def sizes(row, ctx):
        async with ctx.file(row) as path:
            return {"name": row["name"], "bytes": path.stat().st_size}
"""


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_images_and_a_zip_of_them_are_run_like_a_list(desk: Desk) -> None:
    desk.write("sizes.py", SIZES)
    pictures = {"a.png": png(), "b.gif": gif()}
    for name, content in pictures.items():
        (desk.folder / name).write_bytes(content)
    expected = [[name, str(len(content))] for name, content in pictures.items()]

    done = desk.holdfast("run", "sizes.py", "a.png", "b.gif", "--out", "out.csv")
    assert done.returncode == 0, done.stderr
    assert "2 images: one item for each image" in done.stderr
    assert [row[1:3] for row in _rows(desk)] == expected
    again = desk.holdfast("run", "sizes.py", "a.png", "b.gif")
    assert "Job 1 is already done" in again.stderr

    with zipfile.ZipFile(desk.folder / "photos.zip", "w") as archive:
        for name, content in pictures.items():
            archive.writestr(name, content)
        archive.writestr("notes.txt", b"hello")
        archive.writestr("../c.png", png())
    done = desk.holdfast("run", "sizes.py", "photos.zip", "--out", "out.csv")
    assert done.returncode == 3, done.stderr
    rows = _rows(desk)
    assert [row[1:3] for row in rows[:2]] == expected
    assert rows[2][-1] == "BAD_ROW: line 3 is not an image: notes.txt"
    assert "leads out of the zip: ../c.png" in rows[3][-1]

    assert "sizes.py is not an image" in desk.fail("run", "sizes.py", "a.png", "sizes.py")
    assert "no file c.png" in desk.fail("run", "sizes.py", "a.png", "c.png")


def _rows(desk: Desk) -> list[list[str]]:
    with (desk.folder / "out.csv").open(newline="") as file:
        return list(csv.reader(file))[1:]
