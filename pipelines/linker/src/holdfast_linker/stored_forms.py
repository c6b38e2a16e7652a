"""Converts entities, candidates and entries to JSON: for the cache and for our own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.model import Json
from holdfast_linker.dates import BadDate, PartialDate, Precision, parse_date
from holdfast_linker.entities import Candidate, Claim, Entity, Kind, Rank, Value
from holdfast_linker.entries import Entry, GivenValue, Problem
from holdfast_linker.scoring import FieldScore

_OTHER = "other"  # the language of names whose language no longer matters
_MOST_NAMES = 500


def entity_form(entity: Entity, language: str) -> Json:
    """Returns what scoring needs of an entity: all its names, its label in one language, its claims
    without references."""
    return {
        "id": entity.id,
        "label": entity.label(language),
        "names": list(entity.names[:_MOST_NAMES]),
        "description": _description(entity, language),
        "claims": {
            property_id: [[int(claim.rank), value_form(claim.value)] for claim in claims]
            for property_id, claims in entity.claims.items()
        },
    }


def _description(entity: Entity, language: str) -> str | None:
    texts = entity.descriptions
    return texts.get(language) or texts.get("mul") or texts.get("en")


def entity_from(form: Json, language: str) -> Entity:
    label = form["label"]
    return Entity(
        id=form["id"],
        labels={language: label} if label else {},
        aliases={_OTHER: [name for name in form["names"] if name != label]},
        descriptions={language: form["description"]} if form["description"] else {},
        claims={
            property_id: [Claim(Rank(rank), value_from(value)) for rank, value in claims]
            for property_id, claims in form["claims"].items()
        },
    )


def value_form(value: Value) -> list[Any]:
    form: list[Any] = [str(value.kind), value.text]
    if value.date is not None:
        date = value.date
        form.append([date.year, date.month, date.day, int(date.precision), date.julian])
    elif value.point is not None:
        form.append(list(value.point))
    elif value.names:
        form.append(list(value.names[:20]))
    return form


def value_from(form: Sequence[Any]) -> Value:
    kind = Kind(form[0])
    more = form[2] if len(form) > 2 else None
    if kind is Kind.DATE and more:
        year, month, day, precision, julian = more
        date = PartialDate(year, month, day, Precision(precision), bool(julian))
        return Value(kind, form[1], date=date)
    if kind is Kind.PLACE and more:
        return Value(kind, form[1], point=(more[0], more[1]))
    return Value(kind, form[1], names=tuple(more or ()) if kind is Kind.ITEM else ())


def candidate_form(candidate: Candidate) -> Json:
    return {
        "names": list(candidate.names[:_MOST_NAMES]),
        "types": sorted(candidate.types or ()),
        "values": {
            property_id: [value_form(value) for value in values]
            for property_id, values in candidate.values.items()
        },
    }


def values_from(forms: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, list[Value]]:
    return {
        property_id: [value_from(form) for form in values] for property_id, values in forms.items()
    }


def entry_form(entry: Entry) -> Json:
    form: Json = {"name": entry.name, "aliases": list(entry.aliases), "type": entry.type}
    for part in ("dates", "identifiers", "properties"):
        form[part] = [[given.property_id, given.text] for given in getattr(entry, part)]
    form["problems"] = [[p.code, p.column, p.detail] for p in entry.problems]
    return form


def entry_from(form: Json, key: str) -> Entry:
    return Entry(
        key=key,
        name=form["name"],
        aliases=tuple(form["aliases"]),
        type=form["type"],
        dates=tuple(_dated(pid, text) for pid, text in form["dates"]),
        identifiers=tuple(GivenValue(pid, text) for pid, text in form["identifiers"]),
        properties=tuple(GivenValue(pid, text) for pid, text in form["properties"]),
        problems=tuple(Problem(*problem) for problem in form["problems"]),
    )


def _dated(property_id: str, text: str) -> GivenValue:
    try:
        return GivenValue(property_id, text, parse_date(text))
    except BadDate as error:
        return GivenValue(property_id, text, error.rest, doubtful=True)


def field_form(field: FieldScore) -> Json:
    return {
        "field": field.field,
        "given": field.given,
        "shown": field.shown,
        "score": field.score,
        "weight": field.weight,
        "note": field.note,
    }
