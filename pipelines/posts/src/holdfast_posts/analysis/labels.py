"""Sentiment in words and numbers, whichever model found it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

POSITIVE_ABOVE, NEGATIVE_BELOW = 0.25, -0.25


class Label(StrEnum):
    POSITIVE = "POSITIVE"
    NEUTRAL = "NEUTRAL"
    NEGATIVE = "NEGATIVE"


class Missing(StrEnum):
    """Why a post has no sentiment. It is not neutral: nothing is known about it."""

    NO_TEXT = "no_text"
    LANGUAGE = "language"  # no model for it
    SKIPPED = "skipped"  # spam and seeding


@dataclass(frozen=True, slots=True)
class Sentiment:
    score: float  # -1 to 1
    positive: float  # these three add up to 1
    neutral: float
    negative: float

    @property
    def label(self) -> Label:
        if self.score > POSITIVE_ABOVE:
            return Label.POSITIVE
        return Label.NEGATIVE if self.score < NEGATIVE_BELOW else Label.NEUTRAL

    @property
    def confidence(self) -> float:
        """How far the score is from where the label changes: 0 there, 1 at the end of the scale or
        at 0."""
        distance = abs(self.score)
        if distance > POSITIVE_ABOVE:
            return round((distance - POSITIVE_ABOVE) / (1 - POSITIVE_ABOVE), 4)
        return round(1 - distance / POSITIVE_ABOVE, 4)

    @property
    def probabilities(self) -> dict[str, float]:
        return {"POSITIVE": self.positive, "NEUTRAL": self.neutral, "NEGATIVE": self.negative}
