"""Reads a table file whole, the way every test here looks at one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast.errors import InputError
from holdfast.tables.files import TableFile, TableOptions


def records_of(file: TableFile, cursor: int = 0, page_rows: int = 7) -> list[dict[str, Any]]:
    pages = file.pages(cursor, lambda: page_rows, 1_000_000)
    return [orjson.loads(text) for page in pages for text in page.inputs]


def read(path: Path, **options: Any) -> list[dict[str, Any]]:
    with TableFile(path, TableOptions(**options)) as file:
        return records_of(file)


def refusal(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(path, **options)
    assert caught.value.hint
    return caught.value
