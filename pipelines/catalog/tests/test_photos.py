"""Photographs: read in a child process, by barcode and by text, and priced like rows."""

from __future__ import annotations

import io
import os
import random
import signal
import zipfile
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import numpy
import pillow_heif
import pytest
from PIL import Image

from bench.quality.catalog.photographs import photograph, photographs
from holdfast.child_environment import child_environment
from holdfast.errors import Failed
from holdfast.extension import installed
from holdfast.features.accounts.person import Person, Role
from holdfast.features.jobs.new_jobs import FileChoice
from holdfast.kernel.jobs.control import JobRequest
from holdfast.model import ItemStatus
from holdfast_catalog import loading
from holdfast_catalog.normalising.product import product_of
from holdfast_catalog.photos.likeness import distance
from holdfast_catalog.photos.reader import LEAN, PhotoReader
from tests.api.server import ApiServer, ended, taken_in

DIGITS = "4006381333931"


@pytest.fixture
async def reader() -> AsyncIterator[PhotoReader]:
    made = PhotoReader(1500, 20_000_000, 60)
    yield made
    await made.close()


def jpeg(image: Image.Image, **options: Any) -> bytes:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=85, **options)
    return stream.getvalue()


async def test_photographs_are_upright_and_the_same_at_every_size(
    reader: PhotoReader, tmp_path: Path
) -> None:
    picture = photograph(DIGITS, random.Random(1))
    turned = picture.transpose(Image.Transpose.ROTATE_90)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees to the right
    (tmp_path / "a.jpg").write_bytes(jpeg(picture))
    (tmp_path / "b.jpg").write_bytes(jpeg(turned, exif=exif))
    picture.resize((picture.width // 2, picture.height // 2)).save(tmp_path / "c.webp")
    pillow_heif.register_heif_opener()
    picture.save(tmp_path / "d.heic", quality=85)
    names = ("a.jpg", "b.jpg", "c.webp", "d.heic")
    photos = [await reader.look(tmp_path / name) for name in names]
    assert photos[0].barcodes == photos[1].barcodes == (DIGITS,)
    assert (photos[0].width, photos[0].height) == (photos[1].width, photos[1].height)
    assert (photos[0].width, photos[0].height) == picture.size
    assert max(distance(photos[0].hash, each.hash) for each in photos) <= 4
    assert Image.open(io.BytesIO(photos[1].thumbnail)).size[0] <= 320


async def test_barcodes_are_read_on_generated_photographs(
    reader: PhotoReader, tmp_path: Path
) -> None:
    made = list(photographs(tmp_path, 8, seed=7))
    read = [digits in (await reader.look(path)).barcodes for path, digits in made]
    assert sum(read) >= 7


async def test_photograph_is_read_though_its_process_was_killed(
    reader: PhotoReader, tmp_path: Path
) -> None:
    (tmp_path / "a.jpg").write_bytes(jpeg(photograph(DIGITS, random.Random(1))))
    await reader.look(tmp_path / "a.jpg")
    assert reader.child_id is not None
    os.kill(reader.child_id, signal.SIGKILL)
    assert (await reader.look(tmp_path / "a.jpg")).barcodes == (DIGITS,)


async def test_process_that_has_too_little_memory_is_said(tmp_path: Path) -> None:
    small = PhotoReader(100, 50_000_000, 60)
    (tmp_path / "a.jpg").write_bytes(jpeg(photograph(DIGITS, random.Random(1))))
    try:
        with pytest.raises(Failed, match=r"memory|crashed"):
            await small.text(tmp_path / "a.jpg")
        assert (await small.look(tmp_path / "a.jpg")).barcodes == (DIGITS,)
    finally:
        await small.close()


async def test_child_has_no_secrets_in_its_environment(
    reader: PhotoReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "postgresql://ada:s3cret@db/x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    Image.new("RGB", (60, 60)).save(tmp_path / "plain.png")
    await reader.look(tmp_path / "plain.png")
    environment = Path(f"/proc/{reader.child_id}/environ").read_bytes()
    assert b"s3cret" not in environment and b"HOLDFAST" not in environment
    assert {pair.partition(b"=")[0].decode() for pair in environment.split(b"\0") if pair} == set(
        child_environment(**LEAN)
    )


async def test_photographs_with_16_bits_and_of_several_views_are_read(
    reader: PhotoReader, tmp_path: Path
) -> None:
    picture = photograph(DIGITS, random.Random(1))
    grey = numpy.asarray(picture.convert("L")).astype(numpy.uint16) * 257
    Image.fromarray(grey).save(tmp_path / "small.png")
    Image.fromarray(grey.repeat(2, axis=0).repeat(2, axis=1)).save(tmp_path / "large.png")
    large = picture.resize((9000, 7000))
    large.save(tmp_path / "views.jpg", "MPO", save_all=True, append_images=[picture])
    for name in ("small.png", "large.png", "views.jpg"):
        photo = await reader.look(tmp_path / name)
        assert photo.barcodes == (DIGITS,), name


async def test_only_the_formats_of_photographs_are_opened(
    reader: PhotoReader, tmp_path: Path
) -> None:
    """Pillow gives PostScript to Ghostscript, whatever the file is called."""
    header = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n"
    (tmp_path / "oak.jpg").write_text(header)
    with pytest.raises(Failed, match="it is not an image"):
        await reader.look(tmp_path / "oak.jpg")


async def test_images_that_cannot_be_used_are_said(reader: PhotoReader, tmp_path: Path) -> None:
    Image.new("1", (12_000, 12_000)).save(tmp_path / "huge.png")
    (tmp_path / "cut.jpg").write_bytes(jpeg(Image.new("RGB", (600, 600), (9, 99, 9)))[:900])
    (tmp_path / "fake.jpg").write_bytes(b"\xff\xd8\xff this is a text")
    codes = {}
    for name in ("huge.png", "cut.jpg", "fake.jpg"):
        with pytest.raises(Failed) as error:
            await reader.look(tmp_path / name)
        codes[name] = error.value.code
    assert codes == {
        "huge.png": "MEDIA_TOO_LARGE",
        "cut.jpg": "MEDIA_FORMAT_ERROR",
        "fake.jpg": "MEDIA_FORMAT_ERROR",
    }
    large = photograph(DIGITS, random.Random(3)).resize((9000, 7000))
    (tmp_path / "large.jpg").write_bytes(jpeg(large))
    assert (await reader.look(tmp_path / "large.jpg")).barcodes == (DIGITS,)


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_zip_of_photographs_is_priced(database_url: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    with_words = Image.new("RGB", (900, 500), (240, 240, 235))
    from PIL import ImageDraw

    ImageDraw.Draw(with_words).text((60, 180), "Dyson V11 vacuum", fill=(10, 10, 10), font_size=80)
    barcode = jpeg(photograph(DIGITS, rng))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr("one.jpg", barcode)
        files.writestr("again/one.jpg", barcode)
        files.writestr("words.jpg", jpeg(with_words))
        files.writestr("cut.jpg", barcode[:2000])
        files.writestr("notes.txt", b"hello")
    pack = installed()["catalog"].load("web")
    settings = {"catalog_not_found_seconds": "0"}
    async with ApiServer(database_url, tmp_path / "server", [pack], **settings) as server:
        await _load(server)
        ada = await server.signed_in("ada")
        sent = {"file": ("photos.zip", archive.getvalue())}
        stored = (await ada.post("/api/files", files=sent)).json()
        preview = await ada.get(f"/new/files/{stored['id']}?pipeline=catalog")
        assert "Dry run of the first images" in preview.text and "No column" not in preview.text
        made = await ada.post("/api/jobs", files=sent, data={"pipeline": "catalog"})
        assert made.status_code == 202, made.text
        job = await ended(server, ada, made.json()["id"])
        assert (job["pipeline"], job["jobType"]) == ("catalog", "IMAGE")
        assert job["name"] == "photos.zip"
        items = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
        rows = [item["row"] for item in items]
        assert items[4]["errorMessage"] == "line 5 is not an image: notes.txt"
        assert [item["status"] for item in items] == ["DONE", "DONE", "DONE", "ERROR", "ERROR"]
        assert [row.get("Price") for row in rows[:3]] == [12.5, 12.5, 599.0]
        assert "The same photograph as row" in rows[0]["Reason"] + rows[1]["Reason"]
        assert rows[0]["Reason"].startswith(f"Photograph one.jpg. Barcode {DIGITS}")
        assert rows[0]["Description"] == rows[0]["candidates"][0]["title"]
        assert rows[2]["Reason"].startswith("Photograph words.jpg")
        assert items[3]["errorMessage"] == "cut.jpg: it is cut off: the rest is missing"
        failed = await ada.get(f"/jobs/{job['id']}/items/4")
        assert "Set price" in failed.text and "Searches" in failed.text
        page = await ada.get(f"/jobs/{job['id']}/items/3")
        assert "Dyson V11 vacuum" in page.text and "Set price" in page.text
        # Both are of the same catalogue and have no link: their prices tell them apart.
        assert page.text.count("<strong>chosen</strong>") == 1
        assert page.text.count(">Choose</button>") == 1
        picture = await ada.get(f"/catalog/jobs/{job['id']}/items/1/thumbnail")
        assert picture.headers["content-type"] == "image/webp"
        searches = await ada.get(f"/catalog/jobs/{job['id']}/items/1/searches")
        assert "identifier" in searches.text
        form = {"price": "12 apples", "version": "0", "csrf": ada.headers["X-CSRF-Token"]}
        back = await ada.post(f"/catalog/jobs/{job['id']}/items/3/price", data=form)
        assert (back.status_code, back.headers["location"]) == (303, f"/jobs/{job['id']}/items/3")
        form["price"] = "600"
        decided = await ada.post(f"/catalog/jobs/{job['id']}/items/3/price", data=form)
        assert decided.status_code in (200, 303), decided.text
        items = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
        assert (items[2]["row"]["Price"], items[2]["row"]["Pricer"]) == (600.0, "ada")
        assert items[2]["row"]["Replacement Source"] is None  # not the offer's price
        assert (rows[2]["Dep. Cat"], items[2]["row"]["Dep. Cat"]) == ("Appliances", "Appliances")
        assert rows[0]["Dep. Cat"] == "Furniture"  # of what was found, not of the file's name
        page = await ada.get(f"/jobs/{job['id']}/items/3")
        assert "600.00 USD" in page.text and "priced by ada" in page.text
        assert "local" in (await ada.get(f"/catalog/jobs/{job['id']}")).text
        assert "acme" in (await ada.get("/catalog")).text
        await _check_that_nothing_is_left(server, ada, job["id"], barcode)


async def _check_that_nothing_is_left(
    server: ApiServer, ada: httpx2.AsyncClient, job_id: int, image: bytes
) -> None:
    """Of a deleted job, of one that is deleted while a photograph of it is read, of a dry run."""
    parts = server.parts

    async def delete(deleted: int) -> None:
        await parts.deletions.jobs.begin(deleted, "ada")
        await parts.deletions.jobs.delete(deleted)

    await delete(job_id)
    sent = {"file": ("one.jpg", image)}
    made = await ada.post("/api/jobs", files=sent, data={"pipeline": "catalog"})
    reader = parts.pipelines["catalog"]._photos  # type: ignore[attr-defined]
    look = reader.look

    async def look_slowly(path: Path) -> Any:
        photo = await look(path)
        await delete(made.json()["id"])
        return photo

    reader.look = look_slowly
    await taken_in(ada, made.json()["id"])
    await server.work(made.json()["id"])
    reader.look = look
    file_id = (await ada.post("/api/files", files=sent)).json()["id"]
    request, choice = JobRequest(parts.pipelines["catalog"]), FileChoice([file_id])
    for _ in range(2):
        person = Person("ada", Role.OPERATOR)
        ((_, outcome),) = await parts.new_jobs.dry_run(request, person, choice)
        assert outcome.status is ItemStatus.DONE and "The same photo" not in (outcome.result or "")
    assert await server.stored("pipelines/catalog/") == []


async def _load(server: ApiServer) -> None:
    products = [
        product_of({"item_description": "Desk pen", "gtin": DIGITS, "price": 12.5}, "USD"),
        product_of({"item_description": "Dyson V11 vacuum", "brand": "Dyson", "price": 599}, "USD"),
        product_of({"item_description": "Hose for Dyson V11 vacuum", "price": 29}, "USD"),
    ]
    rows = [
        loading.row_of(product, "acme", loading.reference_of(product), True, "")
        for product in products
    ]
    await server.parts.store.database.write("load", partial(loading.save, rows=rows))
