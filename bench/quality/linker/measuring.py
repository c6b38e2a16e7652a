"""Measures the matching on entries whose right answer is known.

A labelled set is JSON lines: {"row": {...}, "expected": "Q42" or null, "case": "homonym"}. Null:
the right answer is that no item fits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import orjson

from holdfast.errors import InputError
from holdfast.model import Json
from holdfast.pipeline import Fetch
from holdfast_linker.entries import ColumnMapping, Entry, read_entry
from holdfast_linker.matching import Lookups, match
from holdfast_linker.scoring import Ranking, Thresholds

PRECISION_GOAL = 0.99
RECALL_GOAL = 0.95
_RANKS = 5
_SHOWN = 50
_LINE = 'A line is {"row": {"name": "Douglas Adams"}, "expected": "Q42"}, or null for no item.'
_PAGE = 500
_TASKS = """
select   seq, item, reason
from     linker_tasks
where    job_id = :job_id and seq > :after
order by seq
limit    :limit
"""
_CANDIDATES = """
select   seq, item
from     linker_candidates
where    job_id = :job_id and seq > :after and seq <= :last and position <= :most
order by seq, position
"""


@dataclass(frozen=True, slots=True)
class LabelledEntry:
    entry: Entry
    expected: str | None
    case: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result for a labelled entry."""

    labelled: LabelledEntry
    ranked: tuple[str, ...]  # the first five candidates
    accepted: str | None
    reason: str
    searches: int = 0

    @property
    def wrong(self) -> bool:
        return self.accepted is not None and self.accepted != self.labelled.expected

    @property
    def missed(self) -> bool:
        expected = self.labelled.expected
        return expected is not None and expected not in self.ranked

    @property
    def ending(self) -> str:
        if self.accepted is not None:
            return "accepted wrongly" if self.wrong else "accepted rightly"
        if not self.ranked:
            return "no candidates"
        return "for review, right one missing" if self.missed else "for review"


@dataclass(frozen=True, slots=True)
class Report:
    judgements: tuple[Judgement, ...]

    @property
    def accepted_count(self) -> int:
        return sum(judgement.accepted is not None for judgement in self.judgements)

    @property
    def precision(self) -> float:
        """The share of entries accepted without a person that are right; 1 if none was accepted."""
        wrong = sum(judgement.wrong for judgement in self.judgements)
        return 1 - wrong / self.accepted_count if self.accepted_count else 1.0

    @property
    def recall(self) -> float:
        """The share of entries with a right answer that have it among the first five candidates; 1
        if there are none."""
        answerable = [
            judgement for judgement in self.judgements if judgement.labelled.expected is not None
        ]
        missed = sum(judgement.missed for judgement in answerable)
        return 1 - missed / len(answerable) if answerable else 1.0

    @property
    def good(self) -> bool:
        return self.precision >= PRECISION_GOAL and self.recall >= RECALL_GOAL


def read_labelled(lines: Iterable[str], mapping: ColumnMapping) -> list[LabelledEntry]:
    return [
        LabelledEntry(
            read_entry(raw["row"], mapping, number),
            raw["expected"],
            str(raw.get("case") or "entry"),
        )
        for number, raw in _labelled_lines(lines)
    ]


def rows_of(lines: Iterable[str]) -> list[Json]:
    """Returns the rows of a labelled set, without the answers, and without NUL, which no table can
    contain."""
    plain = (line.replace("\\u0000", "") for line in lines)
    return [raw["row"] for _, raw in _labelled_lines(plain)]


def _labelled_lines(lines: Iterable[str]) -> Iterator[tuple[int, Json]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"line {number} of the labelled set is not JSON: {error}") from None
        if not isinstance(raw, dict) or not isinstance(raw.get("row"), dict):
            raise InputError(f"line {number} of the labelled set has no row", _LINE)
        if "expected" not in raw or not isinstance(raw["expected"], str | None):
            raise InputError(f"line {number} of the labelled set does not say what is right", _LINE)
        yield number, raw


async def judge_job(fetch: Fetch, job_id: int, labelled: Sequence[LabelledEntry]) -> Report:
    """Compares a job's results with a labelled set: its items are the lines, in order."""
    judged: dict[int, Judgement] = {}
    last = 0
    while rows := await fetch(_TASKS, {"job_id": job_id, "after": last, "limit": _PAGE}):
        ranked: dict[int, list[str]] = {row["seq"]: [] for row in rows}
        first = {"job_id": job_id, "after": last, "last": rows[-1]["seq"], "most": _RANKS}
        for row in await fetch(_CANDIDATES, first):
            ranked[row["seq"]].append(row["item"])
        for row in rows:
            seq = row["seq"]
            judged[seq] = Judgement(
                labelled[seq - 1], tuple(ranked[seq]), row["item"], row["reason"]
            )
        last = rows[-1]["seq"]
    return Report(
        tuple(
            judged.get(seq, Judgement(each, (), None, "its row could not be read"))
            for seq, each in enumerate(labelled, 1)
        )
    )


async def measure(
    labelled: Iterable[LabelledEntry], lookups: Lookups, thresholds: Thresholds
) -> Report:
    judgements = []
    for item in labelled:
        result = await match(item.entry, lookups, thresholds)
        judgements.append(judge(item, result.ranking, result.searches))
    return Report(tuple(judgements))


def judge(labelled: LabelledEntry, ranking: Ranking, searches: int = 0) -> Judgement:
    ranked = tuple(scored.candidate.id for scored in ranking.candidates[:_RANKS])
    accepted = ranking.accepted.candidate.id if ranking.accepted else None
    return Judgement(labelled, ranked, accepted, ranking.reason, searches)


def render(report: Report) -> str:
    """Formats the report as text: the two figures, what became of each kind of entry, and each
    error."""
    lines = [
        f"entries                     {len(report.judgements):6}",
        f"accepted without a person   {report.accepted_count:6}",
        _figure("precision of accepted", report.precision, PRECISION_GOAL),
        _figure(f"recall at rank {_RANKS}", report.recall, RECALL_GOAL),
        "",
        *_confusion(report.judgements),
    ]
    errors = [judgement for judgement in report.judgements if judgement.wrong or judgement.missed]
    if errors:
        lines += ["", "Errors:", *map(_error_line, errors[:_SHOWN])]
    if len(errors) > _SHOWN:
        lines.append(f"... and {len(errors) - _SHOWN} more")
    return "\n".join(lines)


def _figure(name: str, value: float, goal: float) -> str:
    verdict = "good" if value >= goal else "TOO LOW"
    return f"{name:27} {value:6.4f}  (at least {goal}: {verdict})"


def _confusion(judgements: Sequence[Judgement]) -> list[str]:
    endings = sorted({judgement.ending for judgement in judgements})
    counts = Counter((judgement.labelled.case, judgement.ending) for judgement in judgements)
    cases = sorted({judgement.labelled.case for judgement in judgements})
    width = max(map(len, [*cases, "case"]))
    lines = ["  ".join([f"{'case':{width}}", *endings])]
    for case in cases:
        cells = [f"{counts[case, ending]:{len(ending)}}" for ending in endings]
        lines.append("  ".join([f"{case:{width}}", *cells]))
    return lines


def _error_line(judgement: Judgement) -> str:
    labelled = judgement.labelled
    expected = labelled.expected or "none"
    given = judgement.accepted or ", ".join(judgement.ranked) or "nothing"
    subject = f"{labelled.entry.name[:60]!r} ({labelled.case})"
    return f"  {judgement.ending}: {subject} is {expected}, not {given}: {judgement.reason}"
