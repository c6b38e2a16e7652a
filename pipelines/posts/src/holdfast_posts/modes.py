"""Knows which formats are switched on, by the flags and settings of this moment."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from holdfast.flags import FlagValue, ServedFlag, in_share
from holdfast.pipeline import Row, Tx
from holdfast_posts import EXTENSION
from holdfast_posts.formats import Format
from holdfast_posts.options import PostsOptions


@dataclass(frozen=True, slots=True)
class Modes:
    new: bool
    legacy: bool
    canary: float
    shadow: bool

    @property
    def switches(self) -> dict[str, int]:
        return {"new": int(self.new or self.shadow), "legacy": int(self.legacy)}

    def takes(self, message_format: str, job_id: str | None) -> bool:
        if message_format != Format.EVENT:
            return self.legacy
        return self.new and in_share(self.canary, job_id or "")

    def leave_parked(self, event: Row) -> bool:
        """Whether a message that is due would only be parked again."""
        if event["state"] != "PARKED" or self.takes(event["format"], event["job_id"]):
            return False
        is_compared = self.shadow and event["format"] == Format.EVENT
        return not is_compared or bool(event["shadowed"])


async def read_modes(tx: Tx, options: PostsOptions) -> Modes:
    stored = {row["name"]: orjson.loads(row["value"]) for row in await tx.fetch("flags")}

    def value(name: str) -> FlagValue:
        spec = next(spec for spec in EXTENSION.flags if spec.name == name)
        allowed = spec.setting is None or bool(getattr(options, spec.setting))
        return ServedFlag(spec, allowed=allowed).value(stored.get(name))

    return Modes(
        bool(value("posts_new_mode")),
        bool(value("posts_legacy_mode")),
        float(value("posts_canary")),
        bool(value("posts_shadow")),
    )
