"""Recognizes what a post asks for if no phrase says it: to buy something, or help with
something."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from holdfast_posts.analysis.intent_phrases import Intent, listed
from holdfast_posts.analysis.phrases import Phrases
from holdfast_posts.analysis.text import without_marks

_GREETINGS = frozenset(str.split("hi hey hello hii yo guys admin ad so ok okay and but um please"))
_OPENERS = frozenset(
    str.split(
        "how what which where when can could do does did is are will would should may any anyone"
        " has have who whats wheres hows"
    )
)
#: Without a question mark, these may begin a sentence that is not a question.
_FIRM_OPENERS = _OPENERS - frozenset(str.split("when what have has any who is are do will may did"))
_ADDRESSED = frozenset(
    str.split(
        "ạ shop ad admin bạn mọi người vậy ơi em anh chị cả nhà bác các thế hả nhỉ sốp ta luôn á"
    )
)
_ASKING_ENDS = frozenset(str.split("không chưa gì nào đâu sao mấy nhiêu"))
#: They end as questions do, but ask nothing.
_REPROACHES = ("là sao", "tại sao", "chứ sao", "gì đâu", "chút nào", "tí nào", "xíu nào")
_OPINIONS = """
    what do you think, what do you guys think, what do you all think, thoughts, who else,
    team, in the comments, comment below, am i the only one, anyone else think, do you prefer,
    agree, guess what, remember when, you guys, what did you think, favourite, favorite,
    who do you, what s your, which is better, who wins, why does everyone, know what i mean,
    how is everyone, how are you, did you know, did you see, have you seen, is it just me,
    thấy sao, thấy thế nào, nghĩ sao, bình luận, cmt, có ai giống, ai giống, đúng không, phải không,
    ai như mình, chọn màu, team nào, mọi người chọn, bạn chọn, nhớ không, biết gì không, thật không,
    ai cũng, có ai như, có ai đang, anyone else watching, anyone else here, anyone watching,
    ai đồng ý, không chứ, mà không
"""
_PURCHASE = """
    price, prices, pricing, cost, costs, cheapest, cheaper, cheap, buy, buying, purchase, deal,
    deals, discount, discounts, sale, offer, offers, dealer, dealers, dealership, stock, available,
    availability, ship, deliver, reserve, preorder, quote, brochure, catalogue, catalog, sell,
    sells, selling, instalments, installments, monthly, rate, finance, size, sizes, colour, colours,
    color, colors, trade ins, trade in, sample, samples, refill, order one, order two, try it on,
    coming out, launch, released in, student price, for sale, sold, store near, shop near, near me,
    payment plan, hold one, i need, get one, get this, get these, want one,
    giá, mua, bán, đặt, ship, size, màu, mẫu, khuyến mãi, giảm, sale, trả góp, cọc, mở bán,
    showroom, đại lý, chi nhánh, địa chỉ, còn hàng, còn, mặc thử, chạy thử, lăn bánh, sỉ, combo,
    ưu đãi, quận mấy, thanh toán sao, phí ship, order, pass, nhượng, về hàng, hết hàng, bản nào
"""
_ASKING = """
    bao lâu, khi nào, bao giờ, ở đâu, chỗ nào, loại nào, cái nào, thế nào, ra sao, làm sao,
    được không, có được, có nên, có cần, có phải, là gì, bị gì, bị sao, sao lại, cho hỏi, hỏi
"""


def asked_for(
    text: str, words: Sequence[str], language: str | None, toneless: bool
) -> Intent | None:
    if not is_question(text, words, language, toneless):
        return None
    phrases = _phrases(toneless)
    if any(True for _ in phrases[0].found(words)):
        return None
    return Intent.LEAD if any(True for _ in phrases[1].found(words)) else Intent.SUPPORT


def is_question(text: str, words: Sequence[str], language: str | None, toneless: bool) -> bool:
    if language == "vi":
        return _asks_in_vietnamese(text, words, toneless)
    return language == "en" and _asks_in_english(text, words)


def _asks_in_english(text: str, words: Sequence[str]) -> bool:
    start = next((at for at, word in enumerate(words) if word not in _GREETINGS), 0)
    first, second = (*words[start : start + 2], "", "")[:2]
    if text.rstrip().endswith("?"):
        return first in _OPENERS or _asks_at_last(text)
    return first in _FIRM_OPENERS and second != "t"  # can't


def _asks_at_last(text: str) -> bool:
    """Whether the last sentence, or the part after its last comma, begins as a question does."""
    ending = text.rstrip("? ").replace("!", ".").replace(",", ".").replace("?", ".")
    return next(iter(ending.rpartition(".")[2].lower().split()), "") in _OPENERS


def _asks_in_vietnamese(text: str, words: Sequence[str], toneless: bool) -> bool:
    addressed, ends, phrases, reproaches = _vietnamese(toneless)
    at = len(words)
    while at and words[at - 1] in addressed:
        at -= 1
    if at and words[at - 1] in ends:
        last_two = tuple(words[max(0, at - 2) : at])
        return last_two not in reproaches and not last_two[0].isdigit()  # 5 sao: five stars
    if text.rstrip().endswith("?"):
        return True
    politely = at < len(words)
    return politely and any(True for _ in phrases.found(words))


@cache
def _vietnamese(
    toneless: bool,
) -> tuple[frozenset[str], frozenset[str], Phrases[None], list[tuple[str, ...]]]:
    form = without_marks if toneless else str
    return (
        frozenset(map(form, _ADDRESSED)),
        frozenset(map(form, _ASKING_ENDS)),
        Phrases((form(phrase), None) for phrase in listed(_ASKING)),
        [tuple(map(form, phrase.split())) for phrase in _REPROACHES],
    )


@cache
def _phrases(toneless: bool) -> tuple[Phrases[None], Phrases[None]]:
    form = without_marks if toneless else str
    opinions = Phrases((form(phrase), None) for phrase in listed(_OPINIONS))
    return opinions, Phrases((form(phrase), None) for phrase in listed(_PURCHASE))
