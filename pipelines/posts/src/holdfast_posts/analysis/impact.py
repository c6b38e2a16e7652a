"""Computes how far a post reaches and how dangerous it is.

What is unknown is not zero: without a number of followers there is no impact, and no risk.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import log10
from typing import Any

from holdfast_posts.analysis.labels import Label

VIRAL = 70.0
KOL_FOLLOWERS = 50_000
_MEDIUM_NEGATIVE, _MEDIUM_OTHER = 40.0, 60.0
_SCALE = 100_000.0
_VERIFIED = 1.2
_WEIGHTS = {"views": 0.01, "likes": 1.0, "comments_count": 2.0, "saves": 3.0, "shares": 5.0}
_PLATFORMS = {"tiktok": 1.0, "instagram": 1.1, "facebook": 1.2, "youtube": 1.5}
_SENTIMENTS = {Label.NEGATIVE: 1.5, Label.NEUTRAL: 1.0, Label.POSITIVE: 1.1}


class Risk(StrEnum):
    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


@dataclass(frozen=True, slots=True)
class Impact:
    score: float | None
    risk: Risk | None
    is_viral: bool | None
    is_kol: bool | None
    breakdown: dict[str, Any]


def impact_of(
    counts: dict[str, int | None],
    followers: int | None,
    verified: bool | None,
    platform: str,
    sentiment: Label | None,
) -> Impact:
    engagement = _engagement(counts)
    reach = _reach(followers, verified)
    platform_factor = _PLATFORMS.get(platform, 1.0)
    sentiment_factor = _SENTIMENTS[sentiment] if sentiment else 1.0
    breakdown = {
        "engagement": engagement,
        "reach": reach,
        "platform": platform_factor,
        "sentiment": sentiment_factor,
    }
    is_kol = None if followers is None else followers >= KOL_FOLLOWERS
    if engagement is None or reach is None:
        return Impact(None, None, None, is_kol, breakdown)
    product = engagement * reach * platform_factor * sentiment_factor
    score = min(100.0, product / _SCALE * 100)
    risk = _risk(score, sentiment is Label.NEGATIVE, bool(is_kol))
    return Impact(round(score, 2), risk, score >= VIRAL, is_kol, breakdown)


def _engagement(counts: dict[str, int | None]) -> float | None:
    known = [(weight, counts.get(name)) for name, weight in _WEIGHTS.items()]
    if all(count is None for _, count in known):
        return None
    return sum(weight * (count or 0) for weight, count in known)


def _reach(followers: int | None, verified: bool | None) -> float | None:
    if followers is None:
        return None
    return log10(followers + 1) * (_VERIFIED if verified else 1.0)


def _risk(score: float, is_negative: bool, is_kol: bool) -> Risk:
    if is_negative and score >= VIRAL:
        return Risk.CRITICAL if is_kol else Risk.HIGH
    if score >= (_MEDIUM_NEGATIVE if is_negative else _MEDIUM_OTHER):
        return Risk.MEDIUM
    return Risk.LOW
