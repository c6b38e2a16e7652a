"""Matches an entry: which searches to make, when enough is known, and the ranked candidates.

The look-ups are passed in, so that they can be batched across entries and cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast_linker.comparing import bare_identifier
from holdfast_linker.entities import Candidate
from holdfast_linker.entries import Entry, item_of
from holdfast_linker.names import latin_form, spoken_order
from holdfast_linker.scoring import Ranking, Thresholds, rank

FIRST_PAGE = 10
LATER_PAGE = 40  # together with the first page, as many as one call for entities accepts
_MOST_ALIASES = 3
_SINGLE_WORDS = 2


class Lookups(Protocol):
    """What a provider can be asked. Ids come in the provider's order."""

    async def by_identifier(self, property_id: str, value: str) -> Sequence[str]: ...

    async def by_name(self, text: str, limit: int, offset: int) -> Sequence[str]:
        """Finds things whose names begin with the text."""

    async def by_words(self, text: str, fuzzy: bool) -> Sequence[str]:
        """Finds things with all these words, in any order; or with similar words."""

    async def candidates(self, ids: Sequence[str], named: Sequence[str]) -> Mapping[str, Candidate]:
        """Returns what is known of them, by the requested id.

        Redirected ids give their target; ids that do not exist are absent. Items that are values of
        the properties `named` come with their names."""


@dataclass(frozen=True, slots=True)
class ByIdentifier:
    property_id: str
    text: str

    async def run(self, lookups: Lookups) -> Sequence[str]:
        return await lookups.by_identifier(self.property_id, self.text)


@dataclass(frozen=True, slots=True)
class ByName:
    text: str
    limit: int = FIRST_PAGE
    offset: int = 0

    async def run(self, lookups: Lookups) -> Sequence[str]:
        return await lookups.by_name(self.text, self.limit, self.offset)


@dataclass(frozen=True, slots=True)
class ByWords:
    text: str
    fuzzy: bool
    whole: bool = True  # whether it is the name and not only a word of it

    async def run(self, lookups: Lookups) -> Sequence[str]:
        return await lookups.by_words(self.text, self.fuzzy)


Search = ByIdentifier | ByName | ByWords


@dataclass(frozen=True, slots=True)
class Match:
    ranking: Ranking
    searches: int


def plan(entry: Entry) -> list[Search]:
    """Returns all searches worth making for an entry, the most promising first."""
    steps: list[Search] = [
        ByIdentifier(g.property_id, bare_identifier(g.text)) for g in entry.identifiers
    ]
    names = [spoken_order(name) for name in entry.names[: _MOST_ALIASES + 1]]
    latin = [latin_form(name) for name in names[:1]]
    for text in dict.fromkeys([*names[:1], *latin, *names[1:]]):
        steps += [ByName(text), ByName(text, LATER_PAGE, FIRST_PAGE)]
    for name in names[:1]:
        steps += [ByWords(name, fuzzy=False), ByWords(name, fuzzy=True)]
        # Another spelling of one word hides the whole name; long words are the rare ones.
        words = sorted(name.split(), key=len, reverse=True)[:_SINGLE_WORDS]
        steps += [ByWords(word, fuzzy=True, whole=False) for word in words if word != name]
    return steps


async def match(entry: Entry, lookups: Lookups, thresholds: Thresholds) -> Match:
    """Searches as planned until a candidate is good enough, and ranks all results."""
    known: dict[str, Candidate] = {}
    ranking = rank(entry, (), thresholds)
    named = _named_properties(entry)
    searches = 0
    page_was_full = False
    for step in plan(entry):
        if not _worthwhile(step, entry, ranking, thresholds, page_was_full):
            continue
        ids = await step.run(lookups)
        searches += 1
        page_was_full = isinstance(step, ByName) and len(ids) >= step.limit
        fresh = [entity_id for entity_id in dict.fromkeys(ids) if entity_id not in known]
        if fresh:
            known.update(await lookups.candidates(fresh, named))
            ranking = rank(entry, _once(known.values()), thresholds)
        if _good_enough(entry, ranking, thresholds):
            break
    return Match(ranking, searches)


def _named_properties(entry: Entry) -> list[str]:
    """Returns the properties for which the entry gives a text, which may be the name of an item."""
    texts = (given.property_id for given in entry.properties if item_of(given.text) is None)
    return list(dict.fromkeys(texts))


def _once(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Removes repeated candidates: two ids may lead to one thing, if one was redirected."""
    return list({candidate.id: candidate for candidate in candidates}.values())


def _worthwhile(
    step: Search, entry: Entry, ranking: Ranking, thresholds: Thresholds, page_was_full: bool
) -> bool:
    """Whether a planned search could still find the right one, given the results so far."""
    if isinstance(step, ByName):
        return page_was_full or not step.offset
    if isinstance(step, ByIdentifier) or not ranking.candidates:
        return True
    first = ranking.candidates[0]
    if first.name_score < thresholds.similar_name:
        return True
    # All namesakes are known. Another spelling may be meant only if all of them contradict.
    return step.fuzzy and step.whole and bool(first.contradicted(thresholds))


def _good_enough(entry: Entry, ranking: Ranking, thresholds: Thresholds) -> bool:
    """Whether more searching would hardly find a better one: the name is right, and so is the most
    distinguishing value that the entry gives."""
    if ranking.accepted is not None:
        return True
    if not ranking.candidates:
        return False
    first = ranking.candidates[0]
    if first.name_score < thresholds.similar_name:
        return False
    telling = entry.dates or entry.identifiers or entry.properties
    agreeing = first.matched(thresholds)
    return not telling or any(given.property_id in agreeing for given in telling)
