from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class TidesOptions:
    metres: float = setting(3.5, "Height of a high tide.", 0, 20)
