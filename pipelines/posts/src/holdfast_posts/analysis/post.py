"""Runs the whole analysis of one post, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.model import Json
from holdfast_posts.analysis.aspects import aspects_of, keywords_of
from holdfast_posts.analysis.impact import impact_of
from holdfast_posts.analysis.intent import SKIPPED, intent_of, with_feeling
from holdfast_posts.analysis.labels import Missing, Sentiment
from holdfast_posts.analysis.sentiment import VERSION, Model
from holdfast_posts.analysis.text import Prepared, prepare

MODEL_VERSION = f"posts-2 {VERSION}"
_COUNTS = ("views", "likes", "comments_count", "shares", "saves")


def analyse(post: Json, models: Mapping[str, Model]) -> Json:
    """Returns what is stored about a normalised post."""
    prepared = prepare(text_of_post(post), post["hashtags"], post["lang"])
    intent = intent_of(prepared)
    skipped = intent.intent in SKIPPED
    sentiment, missing = _sentiment(prepared, models, skipped)
    intent = with_feeling(intent, prepared, sentiment)
    author = post["author"]
    impact = impact_of(
        {name: post[name] for name in _COUNTS},
        author["followers"],
        author["verified"],
        post["platform"],
        None if sentiment is None else sentiment.label,
    )
    return {
        "language": prepared.language,
        "spam_signals": list(prepared.spam_signals),
        "truncated": prepared.truncated,
        "overall_sentiment": None if sentiment is None else str(sentiment.label),
        "sentiment_score": None if sentiment is None else sentiment.score,
        "sentiment_confidence": None if sentiment is None else sentiment.confidence,
        "sentiment_probabilities": None if sentiment is None else sentiment.probabilities,
        "not_analysed": None if missing is None else str(missing),
        "primary_intent": str(intent.intent),
        "intent_confidence": intent.confidence,
        "impact_score": impact.score,
        "risk_level": None if impact.risk is None else str(impact.risk),
        "is_viral": impact.is_viral,
        "is_kol": impact.is_kol,
        "impact_breakdown": impact.breakdown,
        "aspects_breakdown": _aspects(prepared, sentiment, models),
        "keywords": [] if skipped else keywords_of(prepared, post["hashtags"]),
        "model_version": MODEL_VERSION,
    }


def text_of_post(post: Json) -> str | None:
    parts = [part for part in (post["text"], post["transcription"]) if part]
    return " ".join(parts) or None


def _sentiment(
    prepared: Prepared, models: Mapping[str, Model], skipped: bool
) -> tuple[Sentiment | None, Missing | None]:
    if not prepared.text:
        return None, Missing.NO_TEXT
    if skipped:
        return None, Missing.SKIPPED
    model = models.get(prepared.language or "")
    if model is None:
        return None, Missing.LANGUAGE
    return model(prepared.text), None


def _aspects(
    prepared: Prepared, sentiment: Sentiment | None, models: Mapping[str, Model]
) -> dict[str, Any]:
    if sentiment is None:
        return {}
    return aspects_of(prepared, sentiment, models[prepared.language or ""])
