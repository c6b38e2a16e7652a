"""Scores how well a candidate fits an entry, field by field, and decides which may be accepted
without a person.

score = (name × 1.0 + Σ field × 0.4) ÷ (1.0 + 0.4 × n), over the fields that both sides have: what
one of them does not say does not count. An equal unique identifier makes it 100. A candidate of the
wrong type is dropped, one without any type has half its score.

Candidates are ordered by `support`: the same mean, but a field that the entry gives and the
candidate lacks counts as half agreeing, and a missing type takes a fifth. Otherwise a namesake
about whom nothing is known would come before the one whose year of birth agrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast_linker.comparing import compare, same_identifier
from holdfast_linker.entities import Candidate, number_of
from holdfast_linker.entries import Entry, GivenValue
from holdfast_linker.names import likeness

NAME = "name"
TYPE = "type"
_UNKNOWN_FIELD = 50.0
_UNTYPED = 0.8


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Limits that a project may set for scoring."""

    auto_accept: float = 95.0  # minus `per_field` for each field that was compared
    per_field: float = 5.0
    lead: float = 10.0
    high: float = 80.0
    low: float = 50.0
    agrees: float = 80.0  # a field agrees from here on
    contradicts: float = 50.0  # a date or identifier below contradicts
    name_weight: float = 1.0
    field_weight: float = 0.4
    same_name: float = 100.0
    similar_name: float = 90.0  # a less similar name is never accepted without a person
    evidence: float = 3.0  # what the fields besides an equal name must tell: a year
    evidence_of_similar: float = 6.0  # besides a similar name, as siblings have: more than a day


@dataclass(frozen=True, slots=True)
class FieldScore:
    """One line of the explanation. A score of None: not compared, and the note says why."""

    field: str  # "name", "type" or a property id
    given: str
    shown: str
    score: float | None
    weight: float
    note: str
    strength: float = 0.0
    decisive: bool = False  # a date or an identifier: if it contradicts, it is another thing


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    candidate: Candidate
    score: float
    support: float
    fields: tuple[FieldScore, ...]
    typed: bool  # whether the type could be confirmed, if one is requested

    @property
    def name_score(self) -> float:
        return next((f.score or 0.0 for f in self.fields if f.field == NAME), 0.0)

    def matched(self, thresholds: Thresholds) -> list[str]:
        """Returns the fields that agree."""
        agrees = thresholds.agrees
        return [f.field for f in self.fields if f.score is not None and f.score >= agrees]

    def contradicted(self, thresholds: Thresholds) -> list[FieldScore]:
        """Returns the dates and identifiers that contradict it."""
        least = thresholds.contradicts
        return [f for f in self.fields if f.decisive and f.score is not None and f.score < least]


@dataclass(frozen=True, slots=True)
class Ranking:
    candidates: tuple[ScoredCandidate, ...]
    accepted: ScoredCandidate | None
    reason: str  # why the first was accepted, or why not


def score(entry: Entry, candidate: Candidate, thresholds: Thresholds) -> ScoredCandidate | None:
    """Returns the candidate's score; None if it is of another type than the entry asks for."""
    typing = _type_field(entry, candidate)
    if typing is not None and typing.score == 0.0:
        return None
    fields = [_name_field(entry, candidate, thresholds)] if entry.names else []
    fields += [_given_field(given, candidate, thresholds) for given in entry.dates]
    fields += [_identifier_field(given, candidate, thresholds) for given in entry.identifiers]
    fields += [_given_field(given, candidate, thresholds) for given in entry.properties]
    total, support = _mean(fields, None), _mean(fields, _UNKNOWN_FIELD)
    if _identified(fields, entry):
        total = support = 100.0
    typed = typing is None or typing.score is not None
    if not typed:
        total, support = total / 2, support * _UNTYPED
    explained = (*fields, typing) if typing is not None else tuple(fields)
    return ScoredCandidate(candidate, round(total, 1), round(support, 1), explained, typed)


def _type_field(entry: Entry, candidate: Candidate) -> FieldScore | None:
    if entry.type is None:
        return None
    if not candidate.types:
        return FieldScore(TYPE, entry.type, "", None, 0.0, "the candidate has no type")
    shown = ", ".join(sorted(candidate.types, key=number_of)[:5])
    right = entry.type in candidate.types
    note = "of this type" if right else "of another type"
    return FieldScore(TYPE, entry.type, shown, 100.0 if right else 0.0, 0.0, note)


def _name_field(entry: Entry, candidate: Candidate, thresholds: Thresholds) -> FieldScore:
    """Compares all the entry's names with all labels and aliases; the best pair counts."""
    weight = thresholds.name_weight
    pairs = ((likeness(a, b), a, b) for a in entry.names for b in candidate.names)
    best = max(pairs, key=lambda pair: pair[0], default=None)
    if best is None:
        return FieldScore(NAME, entry.names[0], "", 0.0, weight, "the candidate has no name")
    value, given, shown = best
    note = "the same name" if value >= 100 else f"{value:.0f} % alike"
    return FieldScore(NAME, given, shown, value, weight, note)


def _given_field(given: GivenValue, candidate: Candidate, thresholds: Thresholds) -> FieldScore:
    weight = thresholds.field_weight
    values = candidate.values.get(given.property_id, ())
    result = compare(given, values)
    if result is None:
        note = "cannot be compared" if values else "the candidate does not say"
        return FieldScore(given.property_id, given.text, "", None, weight, note)
    return FieldScore(
        given.property_id,
        given.text,
        result.shown,
        result.score,
        weight,
        result.note,
        strength=min(result.strength, 3.0) if given.doubtful else result.strength,
        decisive=given.date is not None,
    )


def _identifier_field(
    given: GivenValue, candidate: Candidate, thresholds: Thresholds
) -> FieldScore:
    equal = same_identifier(given, candidate.values.get(given.property_id, ()))
    if equal is None:
        return _replaced_decisive(_given_field(given, candidate, thresholds))
    weight = thresholds.field_weight
    return FieldScore(
        given.property_id, given.text, equal.text, 100.0, weight, "equal", 10.0, decisive=True
    )


def _replaced_decisive(field: FieldScore) -> FieldScore:
    """Returns the field as a contradiction if it differs: identifiers are equal or not."""
    if field.score is None:
        return field
    return FieldScore(
        field.field, field.given, field.shown, 0.0, field.weight, "another identifier", 0.0, True
    )


def _identified(fields: Iterable[FieldScore], entry: Entry) -> bool:
    identifiers = {given.property_id for given in entry.identifiers}
    return any(f.field in identifiers and f.score == 100.0 for f in fields)


def _mean(fields: Iterable[FieldScore], unknown: float | None) -> float:
    """Returns the weighted mean; fields that were not compared count as `unknown`, or not at
    all."""
    scores = [(f.weight, unknown if f.score is None else f.score) for f in fields]
    counted = [(weight, value) for weight, value in scores if value is not None]
    weights = sum(weight for weight, _ in counted)
    return sum(weight * value for weight, value in counted) / weights if weights else 0.0


def rank(entry: Entry, candidates: Iterable[Candidate], thresholds: Thresholds) -> Ranking:
    """Returns the candidates in order, the lower number first among equals, and whether the first
    one may be accepted without a person."""
    scored = [s for c in candidates if (s := score(entry, c, thresholds)) is not None]
    scored.sort(key=lambda s: (-s.support, -s.score, number_of(s.candidate.id), s.candidate.id))
    if not scored:
        return Ranking((), None, "there is no candidate")
    obstacle = _obstacle(entry, scored, thresholds)
    if obstacle is not None:
        return Ranking(tuple(scored), None, obstacle)
    fields = " and ".join(scored[0].matched(thresholds))
    return Ranking(tuple(scored), scored[0], f"{fields} agree")


def _obstacle(
    entry: Entry, scored: Sequence[ScoredCandidate], thresholds: Thresholds
) -> str | None:
    """Returns why a person must look at the first candidate; None if no one has to."""
    first = scored[0]
    compared = [f for f in first.fields if f.score is not None and f.field not in (NAME, TYPE)]
    needed = thresholds.auto_accept - thresholds.per_field * len(compared)
    if not first.typed:
        return "the candidate has no type"
    if not entry.name_is_whole:
        return "the name was cut"
    for field in first.contradicted(thresholds):
        return f"{field.field} contradicts: {field.note}"
    if first.score <= needed:
        return f"the score {first.score:g} is not above {needed:g}"
    return _lead_obstacle(scored, thresholds) or _evidence_obstacle(scored, compared, thresholds)


def _lead_obstacle(scored: Sequence[ScoredCandidate], thresholds: Thresholds) -> str | None:
    if len(scored) < 2:
        return None
    lead = scored[0].support - scored[1].support
    if lead > thresholds.lead:
        return None
    return f"it leads {scored[1].candidate.id} by {lead:.1f} only"


def _evidence_obstacle(
    scored: Sequence[ScoredCandidate], compared: Sequence[FieldScore], thresholds: Thresholds
) -> str | None:
    """Returns what evidence is missing: a name alone is never enough, and the more namesakes there
    are, the less a year tells."""
    first = scored[0]
    agreeing = [f for f in compared if (f.score or 0.0) >= thresholds.agrees]
    if not agreeing:
        return "no second field agrees"
    if first.name_score < thresholds.similar_name:
        return f"the names are only {first.name_score:.0f} % alike"
    same = first.name_score >= thresholds.same_name
    needed = thresholds.evidence if same else thresholds.evidence_of_similar
    namesakes = sum(s.name_score >= thresholds.similar_name for s in scored[1:])
    needed += math.floor(math.log2(namesakes)) if namesakes else 0
    evidence = sum(f.strength for f in agreeing)
    if evidence >= needed:
        return None
    others = "1 namesake" if namesakes == 1 else f"{namesakes} namesakes"
    return f"what agrees besides the name is too common, with {others}"
