"""What a post is about to do to a brand, by rules in the order of their priority."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from holdfast.pipelines.posts.analysis.text import Prepared, without_marks


class Intent(StrEnum):
    CRISIS = "CRISIS"
    SEEDING = "SEEDING"
    SPAM = "SPAM"
    COMPLAINT = "COMPLAINT"
    LEAD = "LEAD"
    SUPPORT = "SUPPORT"
    DISCUSSION = "DISCUSSION"


PRIORITIES = {
    Intent.CRISIS: 10,
    Intent.SEEDING: 9,
    Intent.SPAM: 9,
    Intent.COMPLAINT: 7,
    Intent.LEAD: 5,
    Intent.SUPPORT: 4,
    Intent.DISCUSSION: 1,
}
#: Nothing more is read from these.
SKIPPED = frozenset({Intent.SEEDING, Intent.SPAM})

#: Phrases as words with a space between them; `*` at the end stands for the rest of a word.
PHRASES: Mapping[Intent, str] = {
    Intent.CRISIS: (
        "caught fire, on fire, exploded, explosion, boycott, lawsuit, class action, sued, scam,"
        " fraud, food poisoning, poisoned, killed, died, dead, death, injured, accident, recall,"
        " burst into flames, data breach, leaked my data, hospitalized, hospitalised, crashed into,"
        " toxic, police, arrested, brakes failed, unsafe, electrocuted, scandal, cover up,"
        " tẩy chay, lừa đảo, cháy nổ, bốc cháy, cháy xe, phát nổ, nổ pin, ngộ độc, tử vong,"
        " chết người,"
        " tai nạn, mất phanh, kiện ra tòa, khởi kiện, bóc phốt, phốt, thu hồi, nhập viện, công an,"
        " rò rỉ dữ liệu, lộ thông tin, cấp cứu, hàng giả, bê bối, nguy hiểm tính mạng, gây bỏng,"
        " chập điện"
    ),
    Intent.SEEDING: (
        "use my code, discount code, promo code, affiliate, sponsored, gifted by, paid partnership,"
        " link in bio, my referral, swipe up, use code, ad by, collab with, partnered with,"
        " everyone must buy, you all need to buy, buy it now everyone,"
        " mã giảm giá, nhập mã, mua ngay, link ở bio, link bio, giỏ hàng, được tài trợ,"
        " hợp tác cùng,"
        " mọi người nên mua, ai cũng nên có, săn sale ngay, đặt ngay, chốt đơn, voucher,"
        " link dưới comment,"
        " mua ở link, hàng tặng, review hộ, số lượng có hạn, deal sốc, freeship toàn quốc"
    ),
    Intent.SPAM: (
        "follow me, follow back, f4f, l4l, sub4sub, earn money, make money fast, click here,"
        " free iphone,"
        " work from home, crypto signals, check my profile, dm for promo, join my group,"
        " win a prize,"
        " 100 free, get rich, bitcoin, onlyfans, whatsapp me, telegram group, free followers,"
        " kiếm tiền, việc nhẹ lương cao, vay tiền, vay vốn, tăng follow, tăng like,"
        " inbox nhận quà, cày thuê,"
        " kèo thơm, cá cược, nhà cái, xổ số, lô đề, click link, nhấn link nhận, nhận quà miễn phí,"
        " kết bạn zalo, tuyển cộng tác viên, tuyển ctv, làm việc tại nhà, hoàn tiền 100,"
        " trúng thưởng"
    ),
    Intent.COMPLAINT: (
        "refund, money back, terrible, worst, horrible, awful, disappointed, disappointing, broken,"
        " broke after, stopped working, doesn t work, does not work, waste of money, never again,"
        " never buy, rude, no response, ignored my, poor quality, bad quality, defective,"
        " ripped off,"
        " overpriced, unacceptable, fed up, so slow, arrived damaged, damaged, not as described,"
        " still waiting, useless, cheaply made, falling apart, keeps crashing, complain*,"
        " garbage, regret,"
        " thất vọng, tệ quá, quá tệ, hoàn tiền, trả hàng, bực mình, bức xúc, phí tiền,"
        " kém chất lượng,"
        " chất lượng kém, không bao giờ mua, không mua nữa, hỏng, hư rồi, bị lỗi, lỗi hoài,"
        " thái độ nhân viên,"
        " phục vụ kém, chờ mãi, không phản hồi, giao trễ, giao chậm, giao sai, giao nhầm,"
        " khiếu nại, ức chế, tồi,"
        " hối hận, dở tệ, chán, quá đắt, chặt chém, không giống hình, tệ thật, tệ lắm, tệ hại,"
        " phàn nàn, xuống cấp"
    ),
    Intent.LEAD: (
        "how much, price please, where can i buy, where to buy, where can i get, want to buy,"
        " looking to buy,"
        " interested in buying, available in, in stock, do you ship, can i order, how do i order,"
        " pre order,"
        " preorder, test drive, any discount, thinking of buying, planning to buy,"
        " which one should i,"
        " price of, what s the price, cost of, quote, book a, sign me up, take my money, need one,"
        " giá bao nhiêu, bao nhiêu tiền, nhiêu tiền, xin giá, báo giá, mua ở đâu, bán ở đâu,"
        " muốn mua, đặt mua,"
        " còn hàng không, còn hàng, ship không, có ship, đặt hàng, đặt cọc, lái thử, trả góp,"
        " ib giá, giá sao,"
        " tư vấn, định mua, tính mua, nên mua màu nào, có màu, có size, inbox giá, giá nhiêu,"
        " chi nhánh nào, mua sao"
    ),
    Intent.SUPPORT: (
        "how do i, how can i, how to, can someone help, please help, need help, anyone know,"
        " help me,"
        " what should i do, is it possible to, can t log in, cannot log in, reset my password,"
        " manual,"
        " setup, set up, install*, warranty, troubleshoot*, customer service number,"
        " contact support,"
        " where is the, does anyone know, instructions, error code, won t turn on, activate,"
        " update the,"
        " làm sao để, làm thế nào, làm sao, hướng dẫn, giúp mình, giúp em, giúp với, cho hỏi,"
        " cho em hỏi,"
        " cho mình hỏi, ai biết, bảo hành, cài đặt, kích hoạt, kết nối, đổi mật khẩu,"
        " không đăng nhập được, quên mật khẩu,"
        " sửa ở đâu, tổng đài, hotline, hỗ trợ, cách dùng, cách sử dụng, cập nhật phần mềm,"
        " khởi động lại, xử lý sao"
    ),
}


@dataclass(frozen=True, slots=True)
class Found:
    intent: Intent
    confidence: float


def intent_of(prepared: Prepared) -> Found:
    """The first rule that applies. The more of its phrases are there, the surer."""
    line = prepared.line
    toneless = prepared.toneless
    for intent in PRIORITIES:
        hits = sum(1 for phrase in _phrases(intent, toneless) if phrase in line)
        if intent is Intent.SPAM and (hits or prepared.spam_signals):
            hits += len(prepared.spam_signals) - (0 if hits else 1)
        if hits:
            return Found(intent, min(0.95, 0.6 + 0.15 * (hits - 1)))
    return Found(Intent.DISCUSSION, 0.5)


@cache
def _phrases(intent: Intent, toneless: bool) -> tuple[str, ...]:
    """To be searched in a line of words; without marks, both forms."""
    phrases = [phrase.strip() for phrase in PHRASES.get(intent, "").split(",") if phrase.strip()]
    if toneless:
        phrases += [without_marks(phrase) for phrase in phrases if not phrase.isascii()]
    return tuple(f" {phrase[:-1]}" if phrase.endswith("*") else f" {phrase} " for phrase in phrases)
