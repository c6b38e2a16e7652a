"""What people write into forms: read, or refused in a sentence."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from holdfast.errors import UserError

Shape = TypeVar("Shape", bound=BaseModel)
_MOST = 10**12


def whole_number(text: str | None, most: int = _MOST) -> int | None:
    """None where nothing is written. Python reads no number of thousands of digits."""
    if not text:
        return None
    plain = text.isascii() and text.isdecimal() and len(text) < 16
    if not plain or not 0 < int(text) <= most:
        raise UserError(f"{text[:50]!r} is no number that fits", f"1 to {most:,}.")
    return int(text)


def formed(shape: type[Shape], values: dict[str, Any]) -> Shape:
    """What the API takes, out of a form's fields."""
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise UserError(f"{at or 'the form'}: {first['msg']}") from None
