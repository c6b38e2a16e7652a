"""The parts of the analysis, each on its own."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_posts.analysis.impact import Risk, impact_of
from holdfast_posts.analysis.intent import PRIORITIES, Intent, intent_of
from holdfast_posts.analysis.labels import Label, Sentiment
from holdfast_posts.analysis.post import MODEL_VERSION, analyse
from holdfast_posts.analysis.sentiment import english, models, vietnamese
from holdfast_posts.analysis.text import prepare
from holdfast_posts.normalising import normalised
from pipelines.posts.tests.test_normalising import NOW


def counts(views: int, likes: int, comments: int, shares: int, saves: int) -> dict[str, int | None]:
    return {
        "views": views, "likes": likes, "comments_count": comments, "shares": shares, "saves": saves
    }  # fmt: skip


def test_known_value_of_the_formula() -> None:
    impact = impact_of(
        counts(100_000, 5_000, 800, 300, 150), 100_000, True, "tiktok", Label.NEGATIVE
    )
    assert (impact.score, impact.risk, impact.is_viral, impact.is_kol) == (
        85.95,
        Risk.CRITICAL,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("likes", "followers", "platform", "label", "score", "risk"),
    [
        (20_000, 999, "tiktok", Label.NEGATIVE, 90.0, Risk.HIGH),
        (20_000, 49_999, "tiktok", Label.POSITIVE, 100.0, Risk.MEDIUM),
        (20_000, 999, "tiktok", Label.NEUTRAL, 60.0, Risk.MEDIUM),
        (19_999, 999, "tiktok", Label.NEUTRAL, 60.0, Risk.LOW),
        (19_999, 999, "tiktok", None, 60.0, Risk.LOW),
        (10_000, 999, "tiktok", Label.NEGATIVE, 45.0, Risk.MEDIUM),
        (10_000, 999, "youtube", Label.NEUTRAL, 45.0, Risk.LOW),
        (10_000, 999, "instagram", Label.NEUTRAL, 33.0, Risk.LOW),
        (10_000, 999, "facebook", Label.NEUTRAL, 36.0, Risk.LOW),
        (10_000, 999, "elsewhere", Label.POSITIVE, 33.0, Risk.LOW),
        (10_000, 0, "tiktok", Label.NEGATIVE, 0.0, Risk.LOW),
        (0, 999, "tiktok", Label.NEGATIVE, 0.0, Risk.LOW),
    ],
)  # fmt: skip
def test_impact(
    likes: int, followers: int, platform: str, label: Label | None, score: float, risk: Risk
) -> None:
    impact = impact_of(counts(0, likes, 0, 0, 0), followers, False, platform, label)
    assert (impact.score, impact.risk) == (score, risk)


def test_unknown_followers_are_not_zero_followers() -> None:
    unknown = impact_of(counts(1, 1, 1, 1, 1), None, None, "tiktok", None)
    assert (unknown.score, unknown.risk, unknown.is_viral, unknown.is_kol) == (
        None,
        None,
        None,
        None,
    )
    nothing = impact_of(dict.fromkeys(counts(0, 0, 0, 0, 0)), 60_000, None, "tiktok", None)
    assert (nothing.score, nothing.is_kol) == (None, True)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Xe này đẹp quá", "vi"),
        ("xe nay dep qua, gia bao nhieu vay shop", "vi"),
        ("This is the best car", "en"),
        ("Das ist ein sehr schönes Auto und ich liebe es", "de"),
        ("รถคันนี้สวยมากจริงๆ ชอบมาก", "th"),
        ("这辆车真的很漂亮，我非常喜欢", "zh"),
        ("", None),
        ("12345 !!!", None),
        ("sp ko giong hinh, mui hac kho chiu", "vi"),
        ("ngon lam luon 😍😍", "vi"),
        ("Chán luôn ý", "vi"),
        ("Zipper broke the first day. FIRST day.", "en"),
        ("Which shop near the station sells the refill?", "en"),
        ("so was will ich an dem Tag nicht", "de"),
    ],
)
def test_language(text: str, language: str | None) -> None:
    assert prepare(text).language == language


def test_stated_language_counts_where_the_text_does_not_say() -> None:
    assert prepare("VF8", hint="vi-VN").language == "vi"
    assert prepare("VF8", hint="<b>").language is None


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        ("follow me and inbox me now", "invitation"),
        ("http://a.example http://b.example", "links"),
        ("#a " * 20, "hashtags"),
        ("sooooooooo", "repeated_letters"),
        ("buy buy buy buy buy buy now or later", "repeated_words"),
        ("BUY THIS NOW BUY THIS NOW BUY THIS NOW", "capitals"),
        ("gọi 0901234567 nhé", "phone_number"),
    ],
)
def test_spam_signals(text: str, signal: str) -> None:
    assert signal in prepare(text).spam_signals


def test_text_is_composed_and_cut() -> None:
    prepared = prepare("e\u0302\u0301  a\u0007\nb" + "x" * 10_000)
    assert prepared.text.startswith("ế a b")
    assert prepared.truncated
    assert len(prepared.text) <= 5_000


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Sản phẩm tuyệt vời, rất hài lòng", Label.POSITIVE),
        ("Quá thất vọng, hàng kém chất lượng", Label.NEGATIVE),
        ("Không tốt chút nào", Label.NEGATIVE),
        ("không tệ", Label.POSITIVE),
        ("Hôm nay mình đi lấy xe", Label.NEUTRAL),
        ("san pham tuyet voi, rat hai long", Label.POSITIVE),
        ("dich vu te qua, that vong", Label.NEGATIVE),
        ("xe này 😡😡", Label.NEGATIVE),
        ("Chả ra sao. Quá tệ hại", Label.NEGATIVE),  # a negator does not reach the next sentence
        ("hàng hk đúng như mô tả", Label.NEGATIVE),
        ("đẹppppp quáaaaa", Label.POSITIVE),
        ("ko ngon, ko dc như quảng cáo", Label.NEGATIVE),
        ("bảo hành có bao gồm vỡ màn hình ko ạ?", Label.NEUTRAL),
        ("toi qua co xem buoi ra mat", Label.NEUTRAL),
        ("minh dang o sai gon", Label.NEUTRAL),
        ("hang dep qua 😍", Label.POSITIVE),
    ],
)
def test_vietnamese_sentiment(text: str, label: Label) -> None:
    sentiment = vietnamese(text)
    assert sentiment.label is label
    assert sum(sentiment.probabilities.values()) == pytest.approx(1, abs=0.001)


def test_english_sentiment() -> None:
    assert english("I love it, excellent!").label is Label.POSITIVE
    assert english("I hate it, awful.").label is Label.NEGATIVE
    assert english("The car is red.").label is Label.NEUTRAL
    assert english("I couldn't be happier with it").label is Label.POSITIVE
    assert english("I couldn\u2019t be happier with it").label is Label.POSITIVE
    assert english("It isn\u2019t good").label is Label.NEGATIVE
    assert english("does the warranty cover a cracked screen?").label is Label.NEUTRAL
    assert english("Please help, how do I pair it?").label is Label.NEUTRAL
    assert english("it looks like a toaster").label is not Label.POSITIVE


@pytest.mark.parametrize(
    ("score", "label", "confidence"),
    [(0.25, Label.NEUTRAL, 0.0), (-0.25, Label.NEUTRAL, 0.0), (0.26, Label.POSITIVE, 0.0133),
     (-0.26, Label.NEGATIVE, 0.0133), (1.0, Label.POSITIVE, 1.0), (0.0, Label.NEUTRAL, 1.0)],
)  # fmt: skip
def test_labels_by_score(score: float, label: Label, confidence: float) -> None:
    sentiment = Sentiment(score, 0, 1, 0)
    assert (sentiment.label, sentiment.confidence) == (label, confidence)


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("My car caught fire, I want a refund. How much?", Intent.CRISIS),
        ("Tẩy chay hãng này đi, lừa đảo", Intent.CRISIS),
        ("Use my code VIN10 for a discount, follow me", Intent.SEEDING),
        ("Nhập mã giảm giá nha mọi người", Intent.SEEDING),
        ("Kiếm tiền online, việc nhẹ lương cao", Intent.SPAM),
        ("kiem tien online khong ban khong mua nhe", Intent.SPAM),
        ("Terrible quality, where can I buy another brand?", Intent.COMPLAINT),
        ("Giao hàng chậm, thất vọng", Intent.COMPLAINT),
        ("How much is the VF8? How do I order?", Intent.LEAD),
        ("Giá bao nhiêu vậy shop", Intent.LEAD),
        ("How do I reset my password?", Intent.SUPPORT),
        ("Cho hỏi bảo hành mấy năm ạ", Intent.SUPPORT),
        ("Saw one on the road today", Intent.DISCUSSION),
        ("how often should I descale it", Intent.SUPPORT),
        ("Any dealer near Leeds that has the 7 seater?", Intent.LEAD),
        ("What do you guys think about the new logo?", Intent.DISCUSSION),
        ("can't stop listening to this", Intent.DISCUSSION),
        ("xe này đổ xăng 92 hay 95 vậy ạ", Intent.SUPPORT),
        ("bn tien v shop", Intent.LEAD),
        ("shop nhiệt tình, cho 5 sao", Intent.DISCUSSION),
        ("Zero complaints, no regrets", Intent.DISCUSSION),
        ("chưa lần nào thất vọng", Intent.DISCUSSION),
        ("chua thay ai noi ve no", Intent.DISCUSSION),
        ("SOOOOOOOO happy with it", Intent.DISCUSSION),
        ("giá bao nhiêu, sđt mình 0901234567", Intent.LEAD),
        ("", Intent.DISCUSSION),
    ],
)
def test_intent_by_priority(text: str, intent: Intent) -> None:
    assert intent_of(prepare(text)).intent is intent


def test_anger_about_goods_is_a_complaint_and_other_anger_is_not() -> None:
    assert analysed("The staff at this store are horrid people")["primary_intent"] == "COMPLAINT"
    assert analysed("I hate rainy days, they are horrid")["primary_intent"] == "DISCUSSION"


def test_priorities_are_in_order() -> None:
    assert list(PRIORITIES.values()) == [10, 9, 9, 7, 5, 4, 1]


def analysed(text: str | None, **post: Any) -> dict[str, Any]:
    given = {"meta": {"id": "1", "platform": "tiktok"}, "content": {"text": text}, **post}
    return analyse(normalised(given, None, NOW), models())


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "no_text"), ("", "no_text"), ("รถคันนี้สวยมากจริงๆ ชอบมาก", "language"),
     ("Kiếm tiền online, việc nhẹ lương cao", "skipped")],
)  # fmt: skip
def test_not_analysed_is_said_and_not_neutral(text: str | None, reason: str) -> None:
    result = analysed(text)
    assert result["not_analysed"] == reason
    assert result["overall_sentiment"] is None
    assert result["sentiment_score"] is None


def test_aspects_and_keywords() -> None:
    text = "The design is beautiful and I love the look of it, it is a wonderful thing to see. " * 2
    result = analysed(text + "But customer service was horrible and rude.")
    assert result["aspects_breakdown"]["DESIGN"]["sentiment"] == "POSITIVE"
    assert result["aspects_breakdown"]["SERVICE"]["sentiment"] == "NEGATIVE"
    assert "design" in result["keywords"]
    assert result["model_version"] == MODEL_VERSION
    assert list(analysed("Hello there my friend")["aspects_breakdown"]) == ["GENERAL"]


def test_longest_text_and_strange_letters_are_analysed() -> None:
    for text in (
        "x " * 2_000_000,
        "\u0130" * 3_000,
        "👨‍👩‍👧" * 2_000,
        "đẹp " * 5_000,
        "\u0301" * 5_000,
    ):
        assert analysed(text)["primary_intent"]
