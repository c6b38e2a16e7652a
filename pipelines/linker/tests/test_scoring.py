"""Scoring: the formula, the explanation, and what may be accepted without a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast_linker.dates import parse_date
from holdfast_linker.entities import Candidate, Kind, Value
from holdfast_linker.entries import Entry, GivenValue, Problem
from holdfast_linker.scoring import ScoredCandidate, Thresholds, rank, score

T = Thresholds()


def born(text: str) -> GivenValue:
    return GivenValue("P569", text, parse_date(text))


def dated(text: str) -> dict[str, list[Value]]:
    return {"P569": [Value(Kind.DATE, text, date=parse_date(text))]}


def person(
    name: str = "John Smith", number: int = 1, types: Any = ("Q5",), **values: Any
) -> Candidate:
    known = frozenset(types) if types is not None else None
    return Candidate(f"Q{number}", name, (name,), types=known, values=values)


def entry(*dates: str, name: str = "John Smith", **more: Any) -> Entry:
    return Entry("1", name, dates=tuple(map(born, dates)), **more)


def scored(given: Entry, candidate: Candidate) -> ScoredCandidate:
    result = score(given, candidate, T)
    assert result is not None
    return result


def test_score_is_the_weighted_mean_of_name_and_fields() -> None:
    candidate = person(**dated("1952-03-11"), P106=[Value(Kind.ITEM, "Q36180")])
    given = entry("1952", properties=(GivenValue("P106", "Q1"),))
    result = scored(given, candidate)
    assert result.score == round((100 + 0.4 * 80 + 0.4 * 0) / 1.8, 1)
    assert [(f.field, f.score, f.weight) for f in result.fields] == [
        ("name", 100, 1.0),
        ("P569", 80, 0.4),
        ("P106", 0, 0.4),
    ]
    assert result.matched(T) == ["name", "P569"]


def test_what_one_side_does_not_say_is_left_out_and_explained() -> None:
    unsaid = scored(entry("1952"), person())
    assert (unsaid.score, unsaid.fields[1].score) == (100, None)
    assert unsaid.fields[1].note == "the candidate does not say"
    unknown = scored(entry("1952"), person(P569=[Value(Kind.UNKNOWN)]))
    assert (unknown.score, unknown.fields[1].note) == (100, "cannot be compared")
    none = scored(entry("1952"), person(P569=[Value(Kind.NONE)]))
    assert none.fields[1].score == 0


def test_candidate_whose_date_agrees_comes_before_one_without_a_date() -> None:
    ranking = rank(entry("1952"), [person(number=1), person(number=2, **dated("1952"))], T)
    assert [s.candidate.id for s in ranking.candidates] == ["Q2", "Q1"]
    assert ranking.candidates[0].score < ranking.candidates[1].score


def test_best_of_all_names_counts() -> None:
    candidate = Candidate("Q1", "J. Smith", ("J. Smith", "Джон Смит", "Smith John"))
    field = scored(entry(name="Jon", aliases=("John Smith",)), candidate).fields[0]
    assert (field.score, field.given, field.shown) == (100, "John Smith", "Smith John")


def test_wrong_type_is_dropped_and_a_missing_type_halves() -> None:
    typed = entry("1952-03-11", type="Q5")
    assert score(typed, person(types=["Q515"]), T) is None
    untyped = rank(typed, [person(types=None, **dated("1952-03-11"))], T)
    assert untyped.candidates[0].score == 50
    assert (untyped.accepted, untyped.reason) == (None, "the candidate has no type")


def test_equal_identifier_makes_it_a_hundred_and_another_contradicts() -> None:
    viaf = {"P214": [Value(Kind.IDENTIFIER, "1132 30702")]}
    given = entry(identifiers=(GivenValue("P214", "https://viaf.org/viaf/113230702/"),))
    ranking = rank(given, [person(**viaf)], T)
    assert (ranking.candidates[0].score, ranking.reason) == (100, "name and P214 agree")
    assert ranking.accepted is not None
    other = rank(
        entry("1952-03-11", identifiers=(GivenValue("P214", "7"),)),
        [person(**viaf, **dated("1952-03-11"))],
        T,
    )
    assert (other.accepted, other.reason) == (None, "P214 contradicts: another identifier")


def test_identifier_of_somebody_with_another_name_is_for_a_person_to_judge() -> None:
    viaf = {"P214": [Value(Kind.IDENTIFIER, "7")]}
    ranking = rank(entry(identifiers=(GivenValue("P214", "7"),)), [person("Ann Miller", **viaf)], T)
    assert ranking.candidates[0].score == 100
    assert ranking.accepted is None


def test_name_alone_is_never_accepted() -> None:
    ranking = rank(entry(), [person()], T)
    assert (ranking.candidates[0].score, ranking.accepted) == (100, None)
    assert ranking.reason == "no second field agrees"


def test_name_and_day_are_accepted_and_the_reason_says_so() -> None:
    ranking = rank(entry("1952-03-11"), [person(**dated("1952-03-11"))], T)
    assert ranking.accepted is ranking.candidates[0]
    assert ranking.reason == "name and P569 agree"


def test_contradicting_date_is_not_accepted_whatever_the_rest_says() -> None:
    lenient = replace(T, auto_accept=10)
    ranking = rank(entry("1952-03-11"), [person(**dated("1962-03-11"))], lenient)
    assert (ranking.accepted, ranking.reason) == (None, "P569 contradicts: another date")


def test_lead_is_needed() -> None:
    twins = [person(number=n, **dated("1952-03-11")) for n in (2, 1)]
    ranking = rank(entry("1952-03-11"), twins, T)
    assert [s.candidate.id for s in ranking.candidates] == ["Q1", "Q2"]
    assert (ranking.accepted, ranking.reason) == (None, "it leads Q2 by 0.0 only")


def test_common_property_is_no_second_field_by_itself() -> None:
    writer = {"P106": [Value(Kind.ITEM, "Q36180")]}
    given = entry(properties=(GivenValue("P106", "Q36180"),))
    ranking = rank(given, [person(**writer)], T)
    assert ranking.accepted is None
    assert "too common" in ranking.reason


def test_year_is_enough_for_a_rare_name_and_not_among_many_namesakes() -> None:
    right = person(number=1, **dated("1952"))
    others = [person(number=n, **dated(str(1800 + n))) for n in range(2, 8)]
    assert rank(entry("1952"), [right], T).accepted is not None
    assert rank(entry("1952"), [right, *others], T).accepted is None
    exact = person(number=1, **dated("1952-03-11"))
    assert rank(entry("1952-03-11"), [exact, others[0]], T).accepted is not None


def test_similar_name_needs_more_than_a_day_for_siblings_share_it() -> None:
    sister = person("Alexandra Petrov", **dated("1952-03-11"), P106=[Value(Kind.ITEM, "Q36180")])
    brother = entry("1952-03-11", name="Alexander Petrov")
    assert rank(brother, [sister], T).accepted is None
    writer = replace(brother, properties=(GivenValue("P106", "Q36180"),))
    assert rank(writer, [sister], T).accepted is not None


def test_cut_name_is_not_accepted() -> None:
    cut = entry("1952-03-11", problems=(Problem("NAME_CUT", "name", "cut"),))
    assert rank(cut, [person(**dated("1952-03-11"))], T).reason == "the name was cut"


def test_thresholds_are_parameters() -> None:
    strict = replace(T, auto_accept=101)
    ranking = rank(entry("1952"), [person(**dated("1952"))], strict)
    assert (ranking.accepted, ranking.reason) == (None, "the score 94.3 is not above 96")
    assert rank(entry("1952"), [person(**dated("1952"))], replace(T, evidence=4)).accepted is None


def test_nothing_found_says_so() -> None:
    assert rank(entry(), [], T).reason == "there is no candidate"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("Q5", Value(Kind.ITEM, "Q5"), 100),
        ("writer", Value(Kind.ITEM, "Q36180", names=("Schriftsteller", "writer")), 100),
        ("painter", Value(Kind.ITEM, "Q1", names=("printer",)), 86),
        ("cook", Value(Kind.ITEM, "Q1", names=("printer",)), 0),
        ("writer", Value(Kind.ITEM, "Q36180"), None),
        ("1 000", Value(Kind.QUANTITY, "1000"), 100),
        ("1001", Value(Kind.QUANTITY, "1000"), 0),
        ("many", Value(Kind.QUANTITY, "1000"), 0),
        ("http://a.example/x", Value(Kind.URL, "https://www.A.example/x/"), 100),
        ("http://a.example/y", Value(Kind.URL, "https://a.example/x"), 0),
        ("48.8566, 2.3522", Value(Kind.PLACE, "", point=(48.8566, 2.3522)), 100),
        ("48.8566 2.3522", Value(Kind.PLACE, "", point=(48.8611, 2.3522)), 50),
        ("48.8566, 2.3522", Value(Kind.PLACE, "", point=(49.0, 2.3522)), 0),
        ("Paris", Value(Kind.PLACE, "", point=(49.0, 2.3522)), None),
        ("1952", Value(Kind.DATE, "1952", date=parse_date("1952")), 80),
        ("never", Value(Kind.DATE, "1952", date=parse_date("1952")), None),
        ("Das Schloss", Value(Kind.TEXT, "das Schloß"), 100),
    ],
)
def test_values_are_compared_by_their_kind(text: str, value: Value, expected: float | None) -> None:
    result = scored(entry(properties=(GivenValue("P1", text),)), person(P1=[value]))
    field = result.fields[1].score
    assert (None if field is None else round(field)) == expected
