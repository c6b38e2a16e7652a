"""Computes the macro-F1 of sentiment and intent, and of two simple ways: always the most frequent
label, and counting words of a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import UserError
from holdfast_posts.analysis.intent import intent_of, with_feeling
from holdfast_posts.analysis.intent_phrases import Intent, intent_phrases
from holdfast_posts.analysis.labels import Label, Sentiment
from holdfast_posts.analysis.sentiment import models
from holdfast_posts.analysis.text import Prepared, prepare, words_of

#: Clear posts of each intent, by the authors of the first rules.
LABELLED = Path(__file__).parent / "labelled.tsv"
#: Posts as people write them: slang, emoji, irony, no marks. Labelled before their author had read
#: the rules.
NATURAL = Path(__file__).parent / "natural.tsv"
#: By another author, who had not read the rules either.
REVIEW = Path(__file__).parent / "review.tsv"
SETS = (LABELLED, NATURAL, REVIEW)
_COLUMNS = ("language", "sentiment", "intent", "text")


@dataclass(frozen=True, slots=True)
class Labelled:
    language: str
    sentiment: str
    intent: str
    text: str


@dataclass(frozen=True, slots=True)
class Score:
    """Macro-F1 of one task in one language."""

    task: str
    language: str
    posts: int
    ours: float
    words: float
    majority: float


def read_labelled(path: Path = LABELLED) -> list[Labelled]:
    lines = _lines(path)
    if not lines or tuple(lines[0].split("\t")) != _COLUMNS:
        raise UserError(
            f"{path} does not begin with the columns {', '.join(_COLUMNS)}",
            hint="They are separated by tabs.",
        )
    posts = [
        _labelled(line, f"line {number} of {path}")
        for number, line in enumerate(lines[1:], 2)
        if line
    ]
    if not posts:
        raise UserError(f"{path} has no posts")
    return posts


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8") from error


def _labelled(line: str, place: str) -> Labelled:
    parts = line.split("\t")
    if len(parts) != len(_COLUMNS):
        raise UserError(f"{place} has {len(parts)} columns separated by tabs, not {len(_COLUMNS)}")
    for value, known in ((parts[1], Label), (parts[2], Intent)):
        if value not in set(known):
            raise UserError(f"{place} has {value!r}", hint=f"Known are {', '.join(known)}.")
    return Labelled(*parts)


def measure(posts: Sequence[Labelled]) -> list[Score]:
    scores = []
    for language in (*sorted({post.language for post in posts}), "all"):
        chosen = [post for post in posts if language in (post.language, "all")]
        scores.append(_score("sentiment", language, chosen, our_sentiment, counted_sentiment))
        scores.append(_score("intent", language, chosen, our_intent, counted_intent))
    return scores


def _score(
    task: str,
    language: str,
    posts: Sequence[Labelled],
    ours: Callable[[Labelled], str],
    words: Callable[[Labelled], str],
) -> Score:
    truth = [str(getattr(post, task)) for post in posts]
    most = Counter(truth).most_common(1)[0][0]
    return Score(
        task,
        language,
        len(posts),
        macro_f1(truth, [ours(post) for post in posts]),
        macro_f1(truth, [words(post) for post in posts]),
        macro_f1(truth, [most] * len(posts)),
    )


def macro_f1(truth: Sequence[str], found: Sequence[str]) -> float:
    """Returns the mean of the F1 of each label that occurs in the truth."""
    labels = sorted(set(truth))
    pairs = Counter(zip(truth, found, strict=True))
    total = 0.0
    for label in labels:
        right = pairs[label, label]
        said = sum(count for (_, guess), count in pairs.items() if guess == label)
        is_so = sum(count for (fact, _), count in pairs.items() if fact == label)
        total += 2 * right / (said + is_so) if said + is_so else 0.0
    return total / len(labels)


def our_sentiment(post: Labelled) -> str:
    """Returns the sentiment by the language that is found, as for any post; one that is not
    analysed counts as wrong unless it is neutral."""
    sentiment = _sentiment(prepare(post.text))
    return str(sentiment.label if sentiment else Label.NEUTRAL)


def _sentiment(prepared: Prepared) -> Sentiment | None:
    model = models().get(prepared.language or "")
    return model(prepared.text) if model else None


def our_intent(post: Labelled) -> str:
    prepared = prepare(post.text)
    return str(with_feeling(intent_of(prepared), prepared, _sentiment(prepared)).intent)


_GOOD = frozenset(
    str.split("good great love best amazing nice happy beautiful tốt đẹp ngon thích tuyệt hay vui")
)
_BAD = frozenset(
    str.split("bad worst hate terrible awful poor broken slow tệ xấu dở kém hỏng chán lỗi chậm")
)


def counted_sentiment(post: Labelled) -> str:
    """Returns the sentiment by whether there are more good words than bad ones."""
    words = words_of(post.text)
    balance = sum(word in _GOOD for word in words) - sum(word in _BAD for word in words)
    return str(Label.POSITIVE if balance > 0 else Label.NEGATIVE if balance < 0 else Label.NEUTRAL)


def counted_intent(post: Labelled) -> str:
    """Returns the intent whose phrases share the most words with the post, in any order."""
    words = set(words_of(post.text))
    counts = {
        intent: len(words.intersection(words_of(" ".join(phrases))))
        for intent, phrases in intent_phrases().of_intents.items()
    }
    best = max(counts, key=lambda intent: counts[intent])
    return str(best if counts[best] > 1 else Intent.DISCUSSION)
