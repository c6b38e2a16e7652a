"""Vietnamese words of praise and complaint, with their weights: -4 to 4, as VADER's.

They were collected by hand for social posts about goods and services. Phrases come before their
parts: the longest match counts.
"""

from __future__ import annotations

#: weight -> phrases
_PRAISE = {
    3.4: """
        tuyệt vời, xuất sắc, đỉnh cao, đỉnh của chóp, hoàn hảo, tuyệt hảo, quá đỉnh, siêu đỉnh,
        xịn sò, mê mẩn, tuyệt đỉnh, không chê vào đâu được, không có gì để chê, mười điểm, 10 điểm,
        ngon bá cháy, bá cháy, đáng đồng tiền bát gạo, hết nước chấm, đỉnh chóp, năm sao, 5 sao,
        yêu lắm, nhất quả đất, quá tuyệt, tuyệt cú mèo
    """,
    2.7: """
        tuyệt, rất tốt, đáng tiền, đáng mua, hài lòng, ưng ý, ưng lắm, thích lắm, mê quá, yêu quá,
        ưng cái bụng, mê ly, xinh xỉu, đẹp xỉu, ngon xỉu, cười xỉu, cười bể bụng, hơn hẳn,
        quá trời, mê thực sự, auth, êm ru, căng bóng, siêu thơm, ghiền, đỉnh, xịn, chất lượng cao,
        đáng đồng tiền, ấn tượng, xuất chúng, mãn nguyện, tự hào, nghiện, không hối hận, đáng yêu,
        xịn xò, phê, mê tít, cưng quá, hết ý, ủng hộ dài dài
    """,
    2.1: """
        tốt, đẹp, thích, ưng, mê, yêu, ngon, vui, hạnh phúc, mượt, êm, bền, chuẩn, nhanh chóng,
        nhiệt tình, chu đáo, tận tâm, thân thiện, dễ thương, xinh, uy tín, an tâm, yên tâm,
        tiện lợi, tiết kiệm, thoải mái, sạch sẽ, gọn gàng, hữu ích, hiệu quả, chất lượng tốt,
        hợp lý, phải chăng, lịch sự, chuyên nghiệp, mạnh mẽ, thơm, mới mẻ, mượt mà, hợp lắm,
        tốt hơn, đẹp hơn, ngon hơn, gói kỹ, coi hoài, nghe hoài, cute, nghe đi nghe lại, khỏi chê,
        miễn chê, cẩn thận, tận tình, đáng khen, đáng tiền, mlem, giới thiệu cho, đáng giá,
        tin tưởng, hấp dẫn, cuốn, giỏi, sướng, nâng niu
    """,
    1.9: """
        hay quá, hay lắm, hay ghê, hay thật, rất hay, quá hay, hay nha, hay phết, hay vãi,
        phim hay, bài hay, nhạc hay, cực hay, hay ho, hay dã man, hay thế, hay xuất sắc, siêu hay,
        hay cực, được lắm, được phết, sang trọng, sang xịn, nhìn sang, sang chảnh, sang hẳn,
        giá rẻ mà, rẻ mà, rẻ bất ngờ, giá tốt, mát rượi, mát lạnh, bổ dưỡng, ngon bổ rẻ,
        cảm ơn shop, cảm ơn hãng, cảm ơn nhiều, được khen, khen nức nở, ai cũng khen, đáng khen,
        thơm lừng, thơm phức, giòn tan, đậm đà, vừa miệng, hợp khẩu vị, ăn là ghiền, ghiền luôn,
        nghiện luôn, mê luôn, thích luôn, thích ghê, thích quá, thích thật, thấy thích, ok lắm,
        quá ok, ok luôn, ổn áp, ổn lắm, ổn phết, láng mịn, mịn màng, trắng sáng, sáng da, mướt,
        mượt, êm ái, chạy êm, bền bỉ, xài bền, nhanh hơn dự kiến, giao nhanh, ship nhanh,
        giao hàng nhanh, giao sớm, gói cẩn thận, đóng gói đẹp, đóng gói cẩn thận, đóng gói kỹ,
        gói hàng kỹ, đúng mô tả, y hình, giống hình, y như hình, không ngờ, bất ngờ luôn,
        vượt mong đợi, hơn mong đợi, trên cả tuyệt vời, xứng đáng, đáng thử, đáng đầu tư, quay lại,
        sẽ mua lại, mua lại, mua tiếp, ủng hộ tiếp, sẽ ủng hộ, lần sau ghé, tăng cân, giảm 5kg,
        hết mụn, sạch mụn, đỡ hẳn, khỏi hẳn, công dụng tốt, thấy hiệu quả, đỉnh quá, đỉnh thật,
        xịn lắm, xịn quá, xịn thật, xịn ghê, chất quá, chất lừ, chất chơi, ngầu, ngầu quá,
        cưng xỉu, dễ thương xỉu, cute xỉu, xinh lắm, đẹp trai, dễ chịu, thư giãn, đã quá, đã ghê,
        phê pha, cười xỉu, cười ngất, hài quá, vui ghê, vui quá, hạnh phúc quá, may quá, tuyệt quá,
        không chê, không có gì chê, chuẩn auth, chuẩn hãng, chuẩn không cần chỉnh, nhất rồi,
        số một, số 1, top 1, best, good, great, perfect, nice, love, amazing, wow, chill, slay,
        đỉnh nóc, keo lỳ, cháy phố
    """,
    0.0: """
        tốt nhất là, tốt nhất nên, tốt nhất thì, hay là, hay không, hay chưa, đẹp lòng
    """,
    1.4: """
        ổn, ok, oke, okela, tạm ổn, khá, ủng hộ, nhanh, gọn, rộng rãi, tiện, dễ dùng, thú vị,
        may mắn, tích cực, cải thiện, đồng ý, hợp, vừa ý, chắc chắn, đầy đủ, mềm, rõ nét, mong chờ,
        haha, hihi, hehe, xinh xắn, rõ ràng
    """,
}
_COMPLAINT = {
    -3.4: """
        lừa đảo, tồi tệ, kinh khủng, kinh tởm, thảm họa, tệ hại, ghê tởm, khốn nạn, vô lương tâm,
        quá tệ, rác rưởi, cháy nổ, bốc cháy, chết người, ngộ độc, tử vong, tai nạn, nguy hiểm,
        tẩy chay, khủng khiếp, vô trách nhiệm, lừa đảo khách hàng, tệ nhất, dở tệ, phẫn nộ
    """,
    -2.7: """
        thất vọng, tức giận, bực mình, bức xúc, ức chế, lừa, hàng giả, hàng nhái, hàng đểu,
        phí tiền, nhạt như nước ốc, thôi rồi lượm ơi, thôi rồi, ngủ gục, buồn nôn, chán chẳng buồn,
        chẳng ra gì, dở ẹc, dở hơi, xàm, xàm xí, phèn, thấy ghê, tởm, ăn cướp, cướp tiền,
        tiền mất tật mang, mất tiền, rác, tệ, dở, tồi, vô dụng, cãi nhau, thô lỗ, mất dạy, hối hận,
        chán ghét, ghét, sợ, kém chất lượng, chất lượng kém, không bao giờ quay lại, xui,
        khủng hoảng, hỏng hóc, khinh, láo, lươn lẹo, lật lọng, treo đầu dê, một sao, 1 sao,
        cạn lời, bất mãn, tào lao, nhảm, nhảm nhí, điên, đau đớn, tan nát, sập, cháy, bó tay,
        đắt vô lý
    """,
    -2.2: """
        mất tiền, mất thời gian, mất công, mất niềm tin, quá mắc, mắc vậy, mắc ghê, mắc quá,
        mắc mà, giá trên trời, giá cắt cổ, hét giá, vô lý, không đáng, không ra gì, chẳng ra sao,
        không ổn, không ưng, không được như, không dùng được, không xài được, không hài lòng,
        không quay lại, không bao giờ, không bh, lâu quá, lâu lắc, lâu vãi, quá lâu, chờ lâu,
        đợi lâu, giao lâu, cũ rích, cũ mèm, khó ăn, khó coi, khó hiểu, khó xài, khó nuốt, nặng mùi,
        nặng nề, hụt hẫng, ngủ gật, ngủ gục, lê thê, dài dòng, nhạt toẹt, nhạt thếch, phim nhạt,
        nhạt phèo, xem phí, coi phí, buồn ghê, buồn quá, tiếc ghê, tiếc quá, tiếc thật,
        đóng cửa rồi, đau lòng, xót xa, thương quá, lo quá, lo ghê, lo cho, đáng lo,
        sợ quá, sợ thật, hết hồn, rùng mình, ám ảnh, tức quá, tức ghê, tức thật, bực quá, bực ghê,
        bực bội, bực, cay cú, cáu, điên máu, điên tiết, nản, nản quá, oải, mệt ghê, chịu luôn,
        chịu thua, hết nói nổi, cạn lời, lắc đầu, thở dài, ngao ngán, chê, xin kiếu, thôi xin,
        quê quê, sến, lỗi thời, quê xệ, xấu quá, xấu tệ, xấu hoắc, như hạch, như cc, dở như,
        khô như, nguội ngắt, nguội lạnh, cọc cằn, hách dịch, chảnh, lồi lõm, cộc lốc, bất lịch sự,
        cúp máy, bỏ cuộc, bó tay, hết cứu, sọc, rè, lọc cọc, cọt kẹt, ù ù, nứt nẻ, bong đế,
        bong keo, mỏng dính, tróc, bung, sưng, sưng phù, ngứa, rát, nổi mụn, mẩn ngứa, kích ứng,
        bỏng, cấp cứu, nhập viện, tai tiếng, độc hại, thất đức, thất tín, vô đạo đức, vô tâm,
        vô ơn, trốn tránh, chối bỏ, chối, đổ lỗi, đùn đẩy, quá đáng, tráo trở, gian dối, gian lận,
        chộp giật, ma giáo, bịp, bịp bợm, lùa gà, phản cảm, ghê, kinh dị, ghê quá, kinh quá, dơ,
        dơ bẩn, mất vệ sinh, bẩn thỉu, ôi thiu, thiu, tanh, đắng ngắt, chán ngắt, chán òm,
        chán phèo, chán ghê, tuột mood, tụt mood, mất hứng, bad, toang, fail, drama, trễ hẹn,
        kém xa, tệ đi, tệ hơn, xuống dốc, xuống tay, đi xuống, thua xa, không bằng, đừng mua,
        né gấp, tránh xa, càng ngày càng tệ, càng ngày càng chán, càng ngày càng vô lý, ồn ào,
        ầm ầm, đau đầu, nhức đầu, chóng mặt
    """,
    -2.0: """
        không đúng như hình, không đúng hình, không đúng như mô tả, không đúng mô tả,
        không như hình, không giống như hình, không giống hình, chả ra sao, chẳng ra sao, vớ vẩn,
        linh tinh, bậy bạ, thiếu chuyên nghiệp, thiếu trách nhiệm, thiếu tôn trọng, tắt ngúm,
        không hồi âm, không đổi cho, không cho đổi, không trả được, không vừa, không sáng,
        không sôi, không nổi, không kết nối được, mỏng như, mỏng manh, mỏng quá, quá mỏng, quá nhỏ,
        nhỏ xíu, bị han, bị gỉ, bị rỉ, bị móp, bị bể, vứt sọt rác, vứt đi, bỏ đi, tốn thời gian,
        tốn tiền, phiền phức, hằn học, quá đát, chưa đáng, không đúng, không giống, không như,
        không được như, khác mô tả, khác hình, khác xa, hàng fake, fake, hàng nhái, giao sai,
        giao nhầm, gửi nhầm, gửi sai, giao thiếu, gửi thiếu, chưa nhận được, không nhận được,
        không vào, không lên, không chạy, không hoạt động, không vận hành được,
        không thấy hiệu quả, không có tác dụng, không tác dụng, không hiệu quả, không thấy giảm,
        không thấy đỡ, không sử dụng được, không an toàn, không chắc chắn, không bền,
        không nên mua, không ra thể thống, tốt nhất đừng, tốt nhất là đừng, đừng phí tiền,
        phí tiền, là sao, sơ sài, loãng, dỏm, nãn, chào tạm biệt, một đi không trở lại, chật quá,
        quá chật, thô ráp, hở keo, chảy nước, trả hàng, hoàn hàng, yêu cầu hoàn, hoàn lại tiền,
        đòi lại tiền, tránh đi, tránh xa, cẩn thận với, coi chừng, cảnh giác, kém, rẻ tiền, đểu,
        không đảm bảo, không uy tín, không trả lời, không ai trả lời, không nghe máy,
        không bắt máy, thái độ, bực cả mình
    """,
    -2.1: """
        chán, xấu, kém, hỏng, hư, lỗi, bể, vỡ, gãy, rách, nứt, bẩn, hôi, thối, giả, đểu, nhái,
        chậm, quê mùa, quê, thà mua, cho lành, rườm rà, lèo tèo, kênh kiệu, hời hợt, lôi thôi,
        tùm lum, bèo nhèo, dở dở, mốc, ẩm mốc, cứng ngắc, bể dĩa, ê chề, trễ, đắt, mắc quá, chát,
        chặt chém, ồn, rung, giật, lag, đơ, nóng máy, tụt, hao, yếu, phàn nàn, khiếu nại, khó chịu,
        thái độ, buồn, lo lắng, lo ngại, phiền, mệt, mệt mỏi, nhạt, ngán, dị ứng, mẩn đỏ, thiếu,
        sai, nhầm, vô duyên, lừa dối, phớt lờ, thờ ơ, cẩu thả, qua loa, chờ mãi, không phản hồi,
        bỏ rơi, trầy, xước, rỉ sét, gỉ, xuống cấp, thua, thảm, đau, khổ, hết pin
    """,
    -1.4: """
        bình thường thôi, hơi tệ, hơi chán, hơi đắt, chưa tốt, khó dùng, rối, ồn ào, phức tạp,
        tiếc, nghi ngờ, trục trặc, cấn, hụt hẫng, kì cục, kỳ cục, nhạt nhẽo, lỏng lẻo, mờ, nhòe,
        ọp ẹp, cùi, lởm
    """,
}
NEGATORS = frozenset(
    ("không", "chẳng", "chả", "chưa", "ko", "k", "hông", "hổng", "đừng", "khỏi", "kg", "khong",
     "chang", "cha", "chua", "hong")
)  # fmt: skip
#: Emoticons, typed with punctuation.
EMOTICONS = {
    ":)": 0.4, "=)": 0.4, ":D": 1.2, "<3": 2.0, "^^": 1.0, ":3": 0.8, ":((": -1.6, ":(": -1.2,
    "T_T": -1.4, "T.T": -1.4, "=.=": -1.2, "-_-": -1.2, "huhu": -1.0, "hic": -0.8,
}  # fmt: skip
#: factor on what follows, or on what comes before for those that follow
BEFORE = {
    "rất": 1.3, "cực": 1.4, "cực kỳ": 1.5, "cực kì": 1.5, "siêu": 1.4, "quá": 1.3, "vô cùng": 1.5,
    "hết sức": 1.4, "khá": 0.9, "hơi": 0.6, "khá là": 0.9, "thật": 1.2, "thật sự": 1.3,
    "thực sự": 1.3,
    "cũng": 0.9, "tương đối": 0.8, "toàn": 1.1, "đúng là": 1.1,
}  # fmt: skip
AFTER = {
    "quá": 1.3, "lắm": 1.3, "ghê": 1.2, "thật": 1.1, "vô cùng": 1.4, "kinh": 1.3,
    "dã man": 1.4, "vãi": 1.4, "luôn": 1.1, "thật sự": 1.3, "thực sự": 1.3, "kinh khủng": 1.4,
    "ghê gớm": 1.3, "gớm": 1.2, "hết sức": 1.3, "hết nấc": 1.4, "dữ": 1.2, "dữ dội": 1.2,
    "xỉu": 1.4, "thế": 1.1, "thôi": 0.7, "nhất": 1.4,
}  # fmt: skip
#: What reverses a judgement.
TURNS = {
    "nhưng": 1.0,
    "thế mà": 1.0,
    "vậy mà": 1.0,
    "mà dùng": 1.0,
    "mà xài": 1.0,
    "cơ mà": 1.0,
    "có điều": 1.0,
    "chứ xài": 1.0,
    "chứ dùng": 1.0,
    "nhưng mà": 1.0,
    "tuy nhiên": 1.0,
    "ai ngờ": 1.0,
    "ai dè": 1.0,
}
EMOJI = {
    "😍": 2.8, "🥰": 2.8, "❤": 2.5, "💕": 2.3, "😘": 2.3, "👍": 2.0, "🔥": 1.5,
    "💯": 2.2, "😊": 2.0,
    "😁": 1.8, "🤩": 2.8, "👏": 2.0, "🎉": 2.0, "😎": 1.5, "✨": 1.2, "🙏": 1.0,
    "😂": 0.6, "🤣": 0.5,
    "😡": -3.0, "🤬": -3.3, "😠": -2.8, "👎": -2.4, "😢": -1.8, "😭": -1.2, "😞": -2.0, "😤": -2.2,
    "🥳": 2.3, "👌": 1.8, "💖": 2.4, "💗": 2.4, "💓": 2.4, "💞": 2.4, "🧡": 2.0, "💛": 2.0,
    "💚": 2.0,
    "💙": 2.0, "💜": 2.0, "🤍": 1.8, "🫶": 2.4, "😻": 2.6, "😋": 1.8, "🤤": 1.8, "😄": 1.8,
    "😆": 1.2,
    "♥": 2.4, "💪": 1.4, "🌟": 1.2, "⭐": 0.8, "🥲": -1.2, "😑": -1.6, "😐": -0.8, "🤦": -1.6,
    "🤡": -2.2, "🤢": -2.6, "😫": -1.8, "😣": -1.6, "😔": -1.8, "😟": -1.4, "😨": -1.2, "😰": -1.2,
    "☹": -1.8, "🖕": -3.0, "😖": -1.6, "🙁": -1.4,
    "🤮": -3.0, "💩": -2.6, "😒": -1.8, "🙄": -1.5, "😩": -1.8, "💔": -2.5, "😱": -1.2, "😓": -1.3,
}  # fmt: skip
#: The only single words that are clear without their marks: "ban" is to sell, dirty and a friend.
CLEAR_WITHOUT_MARKS = frozenset(
    str.split(
        "tệ đẹp ngon thích xấu chán tuyệt buồn vui tốt ghét mượt xinh chậm lừa cháy rách nứt ghiền"
        " nản sướng thơm bền nhạt bực hỏng trầy đểu nhảm xàm"
    )
)


def _weights() -> dict[str, float]:
    return {
        " ".join(phrase.split()): weight
        for groups in (_PRAISE, _COMPLAINT)
        for weight, phrases in groups.items()
        for phrase in phrases.split(",")
        if phrase.strip()
    }


WEIGHTS = _weights()
