"""Vietnamese words of praise and complaint, with what they weigh: -4 to 4, as VADER's.

Collected by hand for social posts about goods and services. Phrases come before their parts: the
longest match counts.
"""

from __future__ import annotations

#: weight -> phrases
_PRAISE = {
    3.4: "tuyệt vời, xuất sắc, đỉnh cao, đỉnh của chóp, hoàn hảo, tuyệt hảo, quá đỉnh, siêu đỉnh,"
    " xịn sò, mê mẩn, tuyệt đỉnh, không chê vào đâu được, không có gì để chê, mười điểm, 10 điểm,"
    " ngon bá cháy, bá cháy, đáng đồng tiền bát gạo, hết nước chấm, đỉnh chóp, năm sao, 5 sao,"
    " yêu lắm, nhất quả đất, quá tuyệt, tuyệt cú mèo",
    2.7: "tuyệt, rất tốt, đáng tiền, đáng mua, hài lòng, ưng ý, ưng lắm, thích lắm, mê quá,"
    " yêu quá, ưng cái bụng, mê ly, xinh xỉu, đẹp xỉu, ngon xỉu, cười xỉu, cười bể bụng,"
    " hơn hẳn, quá trời, mê thực sự, auth, êm ru, căng bóng, siêu thơm, ghiền,"
    " đỉnh, xịn, chất lượng cao, đáng đồng tiền, ấn tượng, xuất chúng, mãn nguyện, tự hào, nghiện,"
    " không hối hận, đáng yêu, xịn xò, phê, mê tít, cưng quá, hết ý, ủng hộ dài dài",
    2.1: "tốt, đẹp, thích, ưng, mê, yêu, ngon, bổ, rẻ, vui, hạnh phúc, sang, mượt, êm, bền, chuẩn,"
    " nhanh chóng, nhiệt tình, chu đáo, tận tâm, thân thiện, dễ thương, xinh, uy tín, an tâm,"
    " yên tâm, tiện lợi, tiết kiệm, thoải mái, sạch sẽ, gọn gàng, hữu ích, hiệu quả, khen,"
    " chất lượng tốt, hợp lý, phải chăng, lịch sự, chuyên nghiệp, mạnh mẽ, thơm, mới mẻ, nên mua,"
    " mượt mà, hợp lắm, tốt hơn, đẹp hơn, ngon hơn, gói kỹ, coi hoài, nghe hoài, cute,"
    " nghe đi nghe lại, khỏi chê, miễn chê, cẩn thận, tận tình, đáng khen, đáng tiền, mlem,"
    " giới thiệu cho, cảm ơn, đáng giá, tin tưởng, hấp dẫn, cuốn, hay, giỏi, sướng, nâng niu, mát",
    1.4: "ổn, ok, oke, okela, được, tạm ổn, khá, ủng hộ, nhanh, gọn, rộng rãi, tiện, dễ dùng,"
    " thú vị, may mắn, tích cực, cải thiện, đồng ý, hợp, vừa ý, chắc chắn, đầy đủ, mềm, sáng,"
    " rõ nét, mong chờ, hóng, haha, hihi, hehe, chúc mừng, xinh xắn, rõ ràng",
}
_COMPLAINT = {
    -3.4: "lừa đảo, tồi tệ, kinh khủng, kinh tởm, thảm họa, tệ hại, ghê tởm, khốn nạn,"
    " vô lương tâm,"
    " quá tệ, rác rưởi, cháy nổ, bốc cháy, chết người, ngộ độc, tử vong, tai nạn, nguy hiểm,"
    " tẩy chay, khủng khiếp, vô trách nhiệm, lừa đảo khách hàng, tệ nhất, dở tệ, phẫn nộ",
    -2.7: "thất vọng, tức giận, bực mình, bức xúc, ức chế, lừa, hàng giả, hàng nhái, hàng đểu,"
    " phí tiền, nhạt như nước ốc, thôi rồi lượm ơi, thôi rồi, ngủ gục, buồn nôn, chán chẳng buồn,"
    " chẳng ra gì, dở ẹc, dở hơi, xàm, xàm xí, phèn, thấy ghê, tởm, ăn cướp, cướp tiền,"
    " tiền mất tật mang, mất tiền, rác, tệ, dở, tồi, vô dụng, cãi nhau, thô lỗ, mất dạy, hối hận,"
    " chán ghét, ghét, sợ, kém chất lượng, chất lượng kém, không bao giờ quay lại, xui,"
    " khủng hoảng,"
    " hỏng hóc, khinh, láo, lươn lẹo, lật lọng, treo đầu dê, một sao, 1 sao, cạn lời, bất mãn,"
    " tào lao, nhảm, nhảm nhí, điên, đau đớn, tan nát, sập, cháy, bó tay, đắt vô lý",
    -2.1: "chán, xấu, kém, hỏng, hư, lỗi, bể, vỡ, gãy, rách, nứt, bẩn, hôi, thối, giả, đểu, nhái,"
    " chậm, quê mùa, quê, thà mua, cho lành, rườm rà, lèo tèo, kênh kiệu, hời hợt, lôi thôi,"
    " tùm lum, bèo nhèo, dở dở, mốc, ẩm mốc, cứng ngắc, bể dĩa, ê chề,"
    " trễ, đắt, mắc quá, chát, chặt chém, ồn, rung, giật, lag, đơ, nóng máy, tụt, hao, yếu,"
    " phàn nàn,"
    " khiếu nại, khó chịu, thái độ, buồn, lo lắng, lo ngại, phiền, mệt, mệt mỏi, nhạt, ngán,"
    " dị ứng,"
    " mẩn đỏ, mất, thiếu, sai, nhầm, vô duyên, lừa dối, phớt lờ, thờ ơ, cẩu thả, qua loa, chờ mãi,"
    " không phản hồi, bỏ rơi, trầy, xước, rỉ sét, gỉ, xuống cấp, thua, thảm, đau, khổ, hết pin",
    -1.4: "tạm, bình thường thôi, hơi tệ, hơi chán, hơi đắt, mắc, lâu, chưa tốt, khó, khó dùng,"
    " nặng,"
    " cũ, rối, ồn ào, phức tạp, tiếc, nghi ngờ, trục trặc, cấn, hụt hẫng, kì cục, kỳ cục,"
    " nhạt nhẽo,"
    " lỏng lẻo, mờ, nhòe, ọp ẹp, cùi, lởm",
}
NEGATORS = frozenset(
    ("không", "chẳng", "chả", "chưa", "ko", "k", "hông", "hổng", "đừng", "khỏi", "kg", "khong",
     "chang", "cha", "chua", "hong")
)  # fmt: skip
#: factor on what follows, or on what is before for those that come after
BEFORE = {
    "rất": 1.3, "cực": 1.4, "cực kỳ": 1.5, "cực kì": 1.5, "siêu": 1.4, "quá": 1.3, "vô cùng": 1.5,
    "hết sức": 1.4, "khá": 0.9, "hơi": 0.6, "khá là": 0.9, "thật": 1.2, "thật sự": 1.3,
    "thực sự": 1.3,
    "cũng": 0.9, "tương đối": 0.8, "toàn": 1.1, "đúng là": 1.1,
}  # fmt: skip
AFTER = {
    "quá": 1.3, "lắm": 1.3, "ghê": 1.2, "thật": 1.1, "thật sự": 1.2, "vô cùng": 1.4, "kinh": 1.3,
    "dã man": 1.4, "xỉu": 1.4, "thế": 1.1, "thôi": 0.7, "nhất": 1.4, "vãi": 1.3,
}  # fmt: skip
#: What turns a judgement round.
TURNS = {"nhưng": 1.0, "nhưng mà": 1.0, "tuy nhiên": 1.0, "ai ngờ": 1.0, "ai dè": 1.0}
EMOJI = {
    "😍": 2.8, "🥰": 2.8, "❤": 2.5, "💕": 2.3, "😘": 2.3, "👍": 2.0, "🔥": 1.5,
    "💯": 2.2, "😊": 2.0,
    "😁": 1.8, "🤩": 2.8, "👏": 2.0, "🎉": 2.0, "😎": 1.5, "✨": 1.2, "🙏": 1.0,
    "😂": 0.6, "🤣": 0.5,
    "😡": -3.0, "🤬": -3.3, "😠": -2.8, "👎": -2.4, "😢": -1.8, "😭": -1.2, "😞": -2.0, "😤": -2.2,
    "🤮": -3.0, "💩": -2.6, "😒": -1.8, "🙄": -1.5, "😩": -1.8, "💔": -2.5, "😱": -1.2, "😓": -1.3,
}  # fmt: skip
#: Too short or too ambiguous without their marks: "ban" is to sell, dirty and a friend.
_UNCLEAR_WITHOUT_MARKS = frozenset(
    ("mê", "yêu", "êm", "bổ", "hay", "mát", "ghê", "tạm", "vỡ", "hư", "mất", "sai", "lỗi", "chuẩn",
     "khá", "được", "cũ", "khó", "sợ", "lừa", "lâu", "bể", "hôi", "đau", "thua", "mờ", "phê",
     "sang",
     "ưng", "hợp", "mềm", "sáng", "khổ", "gọn", "hao", "mắc", "nặng", "đơ", "cuốn", "giật", "tốt",
     "giỏi", "điên", "cháy", "vui", "cùi", "láo", "giả", "đắt", "bẩn", "kém", "đỉnh",
     "ồn", "trễ")
)  # fmt: skip
#: Clear in everyday writing without marks, although short.
_CLEAR_WITHOUT_MARKS = frozenset(("tốt", "vui", "cháy", "lừa"))


def _weights() -> dict[str, float]:
    return {
        phrase.strip(): weight
        for groups in (_PRAISE, _COMPLAINT)
        for weight, phrases in groups.items()
        for phrase in phrases.split(",")
    }


WEIGHTS = _weights()
UNCLEAR = _UNCLEAR_WITHOUT_MARKS - _CLEAR_WITHOUT_MARKS
