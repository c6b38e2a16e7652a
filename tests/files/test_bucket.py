"""What goes wrong with a bucket is said in sentences, without its credentials."""

from __future__ import annotations

import pytest

from holdfast.errors import FilesGone
from holdfast.files.options import S3Connection
from holdfast.files.probe import check_store
from tests.file_stores import bucket_of
from tests.ports import free_port
from tests.seaweedfs import ACCESS_KEY, SECRET_KEY


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"secret_access_key": "guessed"}, "refuses access (SignatureDoesNotMatch)"),
        ({"access_key_id": "somebody-else"}, "refuses access (InvalidAccessKeyId)"),
        ({"bucket": "no-such-bucket"}, "does not exist"),
    ],
)
async def test_a_refusal_says_why(
    bucket_settings: dict[str, str], wrong: dict[str, str], message: str
) -> None:
    with pytest.raises(FilesGone) as refused:
        await check_store(bucket_of(bucket_settings, **wrong))
    assert message in refused.value.message
    assert "HOLDFAST_" in (refused.value.hint or "")
    _require_no_keys(refused.value, *wrong.values())


async def test_a_service_that_is_down_is_named(bucket_settings: dict[str, str]) -> None:
    endpoint = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(FilesGone, match="cannot be reached") as gone:
        await bucket_of(bucket_settings, endpoint=endpoint).find("a")
    assert endpoint in gone.value.message
    _require_no_keys(gone.value)


def test_keys_are_not_printed() -> None:
    shown = repr(S3Connection("http://127.0.0.1:1", "x", ACCESS_KEY, SECRET_KEY))
    assert ACCESS_KEY not in shown
    assert SECRET_KEY not in shown


def _require_no_keys(error: FilesGone, *others: str) -> None:
    secrets = {ACCESS_KEY, SECRET_KEY, *others} - {"no-such-bucket"}
    assert not [secret for secret in secrets if secret in f"{error} {error.hint}"]
    assert error.__suppress_context__
