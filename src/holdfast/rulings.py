"""Rulings: a person's decision about an item, stored next to its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.errors import UnfitState, UserError
from holdfast.model import ItemStatus, Job, Json


class RulingKind(StrEnum):
    CHOOSE = "choose"  # one of several candidates
    EDIT = "edit"  # values of columns that take precedence over the result's
    REJECT = "reject"  # the result does not count
    REVOKE = "revoke"  # the decision before no longer counts


@dataclass(frozen=True, slots=True)
class Ruling:
    """A decision. `changes` are the values of columns that take precedence in grid and export."""

    version: int
    kind: RulingKind
    value: Any
    changes: Mapping[str, Any]
    reason: str
    author: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ruled:
    """A decision that is about to be written, as `Pipeline.ruling` sees it."""

    job: Job
    seq: int
    row: Json
    status: ItemStatus
    result: Any
    kind: RulingKind
    value: Any
    reason: str
    author: str
    previous: Ruling | None  # what counted until now
    columns: tuple[str, ...] = field(default=())  # that an edit may change; none declared: any


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a decision in bulk decides about one item."""

    seq: int
    kind: RulingKind
    value: Any = None


class OutdatedRuling(UnfitState):
    """Raised if another user has decided about the item in the meantime."""

    def __init__(self, seq: int, latest: Ruling | None) -> None:
        if latest is None:
            message = f"there is no decision about row {seq}"
        else:
            changes = json.dumps(dict(latest.changes), ensure_ascii=False) if latest.changes else ""
            message = f"{latest.author} has decided about row {seq} since: {latest.kind} {changes}"
        version = latest.version if latest is not None else 0
        hint = f"Check that decision, then decide with version {version}."
        super().__init__(message.rstrip(), hint)
        self.latest = latest


def default_changes(ruled: Ruled) -> Mapping[str, Any]:
    """Returns what a decision changes if the pipeline does not say: an edit its columns, a choice
    the columns of what was chosen. A rejection changes nothing."""
    match ruled.kind:
        case RulingKind.EDIT:
            return _edited(ruled)
        case RulingKind.CHOOSE:
            if ruled.value is None:
                raise UserError("nothing was chosen", "Give the chosen candidate as `value`.")
            return ruled.value if isinstance(ruled.value, dict) else {}
    return {}


def _edited(ruled: Ruled) -> Mapping[str, Any]:
    if not isinstance(ruled.value, dict) or not ruled.value:
        raise UserError("an edit has no values", "Give columns and their values as `value`.")
    unknown = sorted(set(ruled.value) - set(ruled.columns)) if ruled.columns else []
    if unknown:
        raise UserError(
            f"there is no column {unknown[0]!r}", f"Columns: {', '.join(ruled.columns)}."
        )
    return ruled.value
