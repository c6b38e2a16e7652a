"""Finds what a post says about design, performance, price and service, and in which words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

from holdfast_posts.analysis.labels import Label, Sentiment
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.text import Prepared, without_marks

_WINDOW = 60
_WINDOWS = 6  # of one post
_KEYWORDS = 10


class Aspect(StrEnum):
    DESIGN = "DESIGN"
    PERFORMANCE = "PERFORMANCE"
    PRICE = "PRICE"
    SERVICE = "SERVICE"
    GENERAL = "GENERAL"


WORDS: Mapping[Aspect, str] = {
    Aspect.DESIGN: (
        "design, look, looks, color, colour, style, interior, exterior, shape, packaging, screen,"
        " material, thiết kế, kiểu dáng, ngoại hình, màu sắc, nội thất, ngoại thất, bao bì,"
        " màn hình,"
        " chất liệu, mẫu mã"
    ),
    Aspect.PERFORMANCE: (
        "performance, speed, battery, engine, quality, power, range, software, camera, lag, taste,"
        " hiệu năng, tốc độ, pin, động cơ, chất lượng, phần mềm, chạy, vận hành, mùi vị, hiệu suất"
    ),
    Aspect.PRICE: (
        "price, cost, expensive, cheap, money, value, affordable, overpriced, discount, giá, đắt,"
        " rẻ,"
        " mắc, tiền, chi phí, giảm giá, khuyến mãi"
    ),
    Aspect.SERVICE: (
        "service, staff, support, delivery, shipping, warranty, refund, customer, seller,"
        " nhân viên,"
        " phục vụ, giao hàng, bảo hành, hỗ trợ, tư vấn, chăm sóc, ship, đổi trả"
    ),
}
_STOP_WORDS = frozenset(
    str.split(
        """
    the a an is are was were be been and or but if then of to in on at for with from by as it
    its this that these those i you he she we they me my your our their his her not no do does
    did have has had will would can could should just so very too really get got one all some
    any more most than what which who how when where why there here also about out up down im
    dont cant its u ur là và của có không cho một các những được này đó thì mà với cũng đã đang
    sẽ rồi ở trong ra vào lại nên nhưng hay hoặc vì do bị bởi khi nếu như thế vậy ai gì nào đâu
    sao mình tôi em anh chị bạn nó họ chúng ta mọi người rất quá lắm cái con chiếc nha nhé ạ à
    ơi đi đến từ trên dưới còn chỉ nữa ko k http https www com
    """
    )
)

Judge = Callable[[str], Sentiment]


def aspects_of(prepared: Prepared, whole: Sentiment, judge: Judge) -> dict[str, Any]:
    """Returns the sentiment of each aspect that is mentioned, from the words around it.

    Without any, the whole post is about the brand in general."""
    scores: dict[Aspect, list[tuple[float, float]]] = {}
    judged = {prepared.text: whole}  # the windows of a short post are the whole of it
    for number, (aspect, window) in enumerate(_mentions(prepared)):
        if number == _WINDOWS:
            break
        if window not in judged:
            judged[window] = judge(window)
        sentiment = judged[window]
        scores.setdefault(aspect, []).append((sentiment.score, sentiment.confidence))
    if not scores:
        return {str(Aspect.GENERAL): _described([(whole.score, whole.confidence)])}
    return {str(aspect): _described(found) for aspect, found in scores.items()}


def _mentions(prepared: Prepared) -> Iterator[tuple[Aspect, str]]:
    """Yields one window for each word of an aspect; windows that begin close together count
    once."""
    text = prepared.text
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter that becomes two in lower case
        text = lowered
    last: dict[Aspect, int] = {}
    for word, aspect in _words(prepared.toneless).found(prepared.words):
        at = lowered.find(word)
        if at >= 0 and abs(at - last.get(aspect, -_WINDOW)) >= _WINDOW:
            last[aspect] = at
            yield aspect, text[max(0, at - _WINDOW) : at + len(word) + _WINDOW]


@cache
def _words(toneless: bool) -> Phrases[Aspect]:
    pairs = [(word.strip(), aspect) for aspect in WORDS for word in WORDS[aspect].split(",")]
    return Phrases((without_marks(word) if toneless else word, aspect) for word, aspect in pairs)


def _described(found: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Returns the mean, weighted by confidence."""
    weight = sum(confidence for _, confidence in found)
    if weight:
        score = sum(score * confidence for score, confidence in found) / weight
    else:
        score = sum(score for score, _ in found) / len(found)
    label: Label = Sentiment(score, 0, 0, 0).label
    return {
        "sentiment": str(label),
        "score": round(score, 4),
        "confidence": round(weight / len(found), 4),
        "mentions": len(found),
    }


def keywords_of(prepared: Prepared, hashtags: Sequence[str]) -> list[str]:
    """Returns hashtags first, then frequent words and pairs of words."""
    words = [word for word in prepared.words if len(word) > 1 and not word.isdigit()]
    useful = [word for word in words if word not in _STOP_WORDS]
    tags = [tag.lower() for tag in hashtags]
    if len(set(words)) == len(words):  # true of most posts: no word and no pair is more frequent
        return list(dict.fromkeys(tags + useful))[:_KEYWORDS]
    counts = Counter(useful)
    pairs = Counter(
        f"{first} {second}"
        for first, second in pairwise(words)
        if first not in _STOP_WORDS and second not in _STOP_WORDS
    )
    frequent = [pair for pair, count in pairs.most_common(_KEYWORDS) if count > 1]
    ranked = tags + frequent + [w for w, _ in counts.most_common(20)]
    return list(dict.fromkeys(ranked))[:_KEYWORDS]
