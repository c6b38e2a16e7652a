"""The settings of the file store: their keys are never printed, and `doctor` tries them."""

from __future__ import annotations

import json

import pytest

from tests.command import HoldfastCommand
from tests.seaweedfs import ACCESS_KEY, SECRET_KEY

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@on_sqlite
def test_doctor_tries_the_store_and_nothing_prints_its_keys(
    holdfast_command: HoldfastCommand, bucket_settings: dict[str, str]
) -> None:
    shown = holdfast_command.run("settings", "--json", env=bucket_settings)
    values = json.loads(shown.stdout)
    assert values["HOLDFAST_FILES_BUCKET"] == bucket_settings["HOLDFAST_FILES_BUCKET"]
    assert values["HOLDFAST_S3_SECRET_ACCESS_KEY"] == "***"
    good = holdfast_command.run("doctor", env=bucket_settings)
    assert good.returncode == 0, good.stdout
    assert "a file was written, read, listed and deleted" in good.stdout
    wrong = {**bucket_settings, "HOLDFAST_S3_SECRET_ACCESS_KEY": "guessed-secret"}
    bad = holdfast_command.run("doctor", env=wrong)
    assert bad.returncode == 3
    assert "refuses access (SignatureDoesNotMatch)" in bad.stdout
    assert "HOLDFAST_S3_ACCESS_KEY_ID" in bad.stdout
    everything = "".join(run.stdout + run.stderr for run in (shown, good, bad))
    for secret in (ACCESS_KEY, SECRET_KEY, "guessed-secret"):
        assert secret not in everything


@on_sqlite
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FILES_BUCKET", "Not a bucket"),
        ("S3_ENDPOINT", "http://user:password@storage.example.org"),
        ("FILES_PREFIX", "a/../b"),
        ("FILE_BUCKETS", "incoming,Not a bucket/x"),
    ],
)
def test_wrong_values_are_refused(holdfast_command: HoldfastCommand, name: str, text: str) -> None:
    refused = holdfast_command.run("settings", env={f"HOLDFAST_{name}": text})
    assert refused.returncode != 0
    assert f"HOLDFAST_{name} must be" in refused.stderr
