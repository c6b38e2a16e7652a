"""The words by which the intent of a post is recognised, English and Vietnamese.

Written by occasion: delivery, support, money, faults, danger, purchase, questions, advertising.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Intent(StrEnum):
    CRISIS = "CRISIS"
    SEEDING = "SEEDING"
    SPAM = "SPAM"
    COMPLAINT = "COMPLAINT"
    LEAD = "LEAD"
    SUPPORT = "SUPPORT"
    DISCUSSION = "DISCUSSION"


#: Phrases as words with a space between them; `*` at the end stands for the rest of a word.
PHRASES: Mapping[Intent, str] = {
    Intent.CRISIS: """
        caught fire, on fire, exploded, explosion, boycott, lawsuit, class action, sued,
        scam, food poisoning, poisoned, injured, accident, recall, burst into flames,
        data breach, leaked my data, hospitalized, hospitalised, crashed into, police,
        arrested, brakes failed, unsafe, electrocuted, scandal, cover up, tẩy chay, lừa đảo,
        cháy nổ, bốc cháy, cháy xe, phát nổ, nổ pin, ngộ độc, tử vong, chết người, tai nạn,
        mất phanh, kiện ra tòa, khởi kiện, bóc phốt, phốt, thu hồi, nhập viện, công an,
        rò rỉ dữ liệu, lộ thông tin, cấp cứu, hàng giả, bê bối, nguy hiểm tính mạng,
        gây bỏng, chập điện, in hospital, in the hospital, in a hospital, to hospital,
        to the hospital, a e, ambulance, could have been killed, got killed, was killed,
        were killed, people died, died from, died in, died after, fatal, burns, burned my,
        burnt my, melted, smoke came out, smoke coming, coming out of the dashboard, flames,
        electric shock, choked on, choking hazard, found glass, glass in, metal in my,
        mold in, mould in, maggots, cockroach in, worms in, contaminated, throwing up,
        vomiting, allergic reaction, passwords, data leak, leaked online, dumped online,
        hacked, identity theft, stop buying from, not buying another,
        never support this company, protest, sue them, suing, investigation,
        health inspector, handcuffs, racist, discrimination, harassment, child labor,
        child labour, sweatshop, evacuated, death, fraud, bốc khói, cháy rụi, bị nổ, nổ ngay,
        nổ tung, bị bỏng, bỏng cả, bị bắt, dòi trong, gián trong, sâu trong, có gián, có dòi,
        có sâu, dị vật, tung lên mạng, bị lộ, bị hack, đổi mật khẩu gấp, ôm tiền, quỵt,
        không ra gì, đối xử với công nhân, biểu tình, điều tra, thanh tra, gây chết,
        suýt chết, thoát chết, mất mạng, đình chỉ
    """,
    Intent.SEEDING: """
        use my code, discount code, promo code, affiliate, sponsored, gifted by,
        paid partnership, link in bio, my referral, swipe up, use code, ad by, collab with,
        partnered with, everyone must buy, you all need to buy, buy it now everyone,
        mã giảm giá, nhập mã, mua ngay, link ở bio, link bio, giỏ hàng, được tài trợ,
        hợp tác cùng, mọi người nên mua, ai cũng nên có, săn sale ngay, đặt ngay, voucher,
        link dưới comment, mua ở link, hàng tặng, review hộ, số lượng có hạn, deal sốc,
        freeship toàn quốc, my code, off with code, code for, linked in my bio, in my bio,
        teaming up with, teamed up with, they sent me, sent me this, pr package, gifted,
        tap the basket, tap the link, basket below, link below, at the link, shop now,
        order now, off till, off until, sale ends, ends tonight, till midnight, limited time,
        run don t walk, thank me later, you will thank me, in collaboration with,
        my discount, ambassador, yellow basket, hãng gửi, được hãng, nhãn hàng gửi,
        cùng nhãn hàng, góc trái, link dưới, link mình để, ở link, kẻo hết, hết sale,
        săn deal, deal hời, cam kết hiệu quả, liệu trình, inbox em ngay, ib em ngay,
        inbox ngay, nhắn tin ngay, cả nhà iu, giảm sốc, xả kho, sale sập sàn, link ở giỏ,
        link giỏ hàng, mua liền tay
    """,
    Intent.SPAM: """
        follow me, follow back, f4f, l4l, sub4sub, earn money, make money fast, click here,
        free iphone, work from home, crypto signals, check my profile, dm for promo,
        join my group, win a prize, 100 free, get rich, bitcoin, onlyfans, whatsapp me,
        telegram group, free followers, kiếm tiền, việc nhẹ lương cao, vay tiền, vay vốn,
        tăng follow, tăng like, inbox nhận quà, cày thuê, kèo thơm, cá cược, nhà cái, xổ số,
        lô đề, click link, nhấn link nhận, nhận quà miễn phí, kết bạn zalo,
        tuyển cộng tác viên, tuyển ctv, làm việc tại nhà, hoàn tiền 100, trúng thưởng,
        sub to my, sub back, follow for follow, my channel, ask me how, on telegram,
        via telegram, whatsapp, my wallet, btc, forex, trading signals, passive income,
        investment opportunity, hot singles, singles near you, generator, v bucks, robux,
        followers cheap, cheap followers, buy followers, get followers, giveaway click,
        bit ly, tinyurl, click the link below to win, work at home, loan offer, vay nhanh,
        cho vay, không thế chấp, giải ngân, không cần kinh nghiệm, lương ngày, nhóm zalo,
        vào nhóm, soi cầu, đăng ký nhận, nhận thưởng, chéo tym, chéo tim, chéo follow,
        follow chéo, fl chéo, sub chéo, bán sim, xem phim miễn phí, nạp tiền, tài xỉu,
        cộng tác viên online, thu nhập thụ động
    """,
    Intent.COMPLAINT: """
        refund, money back, terrible, worst, horrible, awful, disappointed, disappointing,
        broken, broke after, stopped working, doesn t work, does not work, waste of money,
        never again, never buy, rude, no response, ignored my, poor quality, bad quality,
        defective, ripped off, overpriced, unacceptable, fed up, so slow, arrived damaged,
        damaged, not as described, still waiting, useless, cheaply made, falling apart,
        keeps crashing, complain*, garbage, regret, thất vọng, tệ quá, quá tệ, hoàn tiền,
        trả hàng, bực mình, bức xúc, phí tiền, kém chất lượng, chất lượng kém,
        không bao giờ mua, không mua nữa, hư rồi, bị lỗi, lỗi hoài, thái độ nhân viên,
        phục vụ kém, chờ mãi, không phản hồi, giao trễ, giao chậm, giao sai, giao nhầm,
        khiếu nại, ức chế, tồi, hối hận, dở tệ, chán, quá đắt, chặt chém, không giống hình,
        tệ thật, tệ lắm, tệ hại, phàn nàn, xuống cấp, never arrived, hasn t arrived,
        still hasn t, still haven t, still says, still no, no tracking, wrong item,
        wrong size, missing items, arrived broken, arrived cold, arrived late, stone cold,
        keeps cancelling, keep cancelling, cancelled on me, cancelled my, cancels on me,
        on hold, no one answers, nobody answers, nobody picks up, nobody replies,
        no one replies, no reply, crickets, ignoring me, copy paste answer, is a joke,
        what a joke, won t refund, refuse to refund, overcharged, charged me, charged twice,
        double charged, hidden fees, rip off, ripoff, not worth, too expensive,
        way too expensive, broke the first, broke on, it broke, fell apart, quit working,
        didn t work, won t work, not working, barely works, barely lasts, keeps freezing,
        keeps cutting, keeps logging, logs me out, logging me out, keeps, out of sync,
        glitchy, buggy, ruined, peeling, pilling, cracked, leaking, feels cheap, felt cheap,
        cheap plastic, sent it back, returning it, had to return, never buying,
        never ordering, not coming back, won t be back, last time i, let down, expected more,
        expected better, expected so much, sick of, tired of, had enough, do better,
        shame on, smh, fuming, furious, livid, so badly, breaks me out, broke me out,
        deleted all my, lost all my, no longer works, why does the, why do i, why is it so,
        why can t, after i cancelled, waited, chưa thấy đâu, vẫn chưa thấy, chưa nhận được,
        không rep, không trả lời, không nghe máy, không ai nghe, nhạc chờ, đùn đẩy, đùn qua,
        đẩy qua đẩy lại, giao thiếu, quăng hàng, móp, bung keo, bong tróc, tróc, lọc cọc,
        nóng như, tụt pin, pin tụt, văng ra, bị văng, bị treo, giật lag, quảng cáo hoài,
        toàn quảng cáo, hủy chuyến, hủy đơn, một đằng, không như hình, không giống quảng cáo,
        nổi mụn, kích ứng, tốn tiền, mất tiền, xin kiếu, không quay lại, cạch, chừa, bực,
        kì cục, kỳ cục, bó tay, thái độ, cắt cổ, là sao trời, là sao vậy, gì mà,
        coi thường khách, như kiểu khách, lèo tèo, bị hỏng, hỏng rồi, mau hỏng, nhanh hỏng,
        hư hoài, lỗi tùm lum, không đáng, phí cả, lừa khách, nợ tiền, không hỗ trợ, bỏ mặc,
        làm ăn
    """,
    Intent.LEAD: """
        how much, price please, where can i buy, where to buy, where can i get, want to buy,
        looking to buy, interested in buying, available in, in stock, do you ship,
        can i order, how do i order, pre order, preorder, test drive, any discount,
        thinking of buying, planning to buy, which one should i, price of, what s the price,
        cost of, book a, sign me up, take my money, need one, giá bao nhiêu, bao nhiêu tiền,
        nhiêu tiền, xin giá, báo giá, mua ở đâu, bán ở đâu, muốn mua, đặt mua,
        còn hàng không, còn hàng, ship không, có ship, đặt hàng, đặt cọc, lái thử, trả góp,
        ib giá, giá sao, tư vấn, định mua, tính mua, nên mua màu nào, có màu, có size,
        inbox giá, giá nhiêu, chi nhánh nào, mua sao, where did you get, where d you get,
        where can i find, where do i get, where is this from, link please, link pls,
        drop the link, do you have it in, do you have this in, do u have, still available,
        is it available, is this available, restock, back in stock, they deliver,
        you deliver, deliver to, ship to, shipping to, student discount, wholesale,
        bulk order, trade in, trading in, what deal, kind of deal, looking for a, any recs,
        any recommendations, budget, bookings, book a table, reserve a, need this in,
        i need this, want one, i want this, pick up today, dm d you, dm me the price,
        financing, lease, how many can i, what sizes, which sizes, comes in, nhiêu shop,
        nhiêu vậy, nhiêu ạ, nhiêu z, bao nhiêu, ib e giá, ib em giá, giá với, giá ạ, giá sỉ,
        xin địa chỉ, địa chỉ quán, địa chỉ shop, shop ở đâu, còn size, còn màu, còn ko,
        khi nào có hàng, có hàng lại, khi nào về hàng, ship về, ship tới, ship ko, có giao,
        chốt em, chốt 1, cho mình 1, cho em 1, lấy 1, đặt 1, cần mua, tìm mua, chiết khấu,
        mua sỉ, trả trước, đưa trước, tư vấn mình, tư vấn em, sale nào, phân vân,
        nên mua con nào, mua đâu, đặt bàn, đặt lịch, để lại cho mình, xin link, cho xin link,
        xin info, xin in4
    """,
    Intent.SUPPORT: """
        how do i, how can i, how to, can someone help, please help, need help, anyone know,
        help me, what should i do, is it possible to, can t log in, cannot log in,
        reset my password, setup, set up, install*, warranty, troubleshoot*,
        customer service number, contact support, where is the, does anyone know,
        instructions, error code, won t turn on, làm sao để, làm thế nào, làm sao, hướng dẫn,
        giúp mình, giúp em, giúp với, cho hỏi, cho em hỏi, cho mình hỏi, ai biết, bảo hành,
        cài đặt, kích hoạt, kết nối, đổi mật khẩu, không đăng nhập được, quên mật khẩu,
        sửa ở đâu, tổng đài, hotline, hỗ trợ, cách dùng, cách sử dụng, cập nhật phần mềm,
        khởi động lại, xử lý sao, how do you, is there a way, anyone else s,
        anyone else having, has anyone, what does that, what does it mean, what does this,
        which setting, where do i find, can t find where, can t find the, forgot my,
        lost my receipt, who do i contact, who do i call, help pls, pls help, help please,
        any fix, a fix for, what did you do, do i have to, do i need to, do you have to,
        does it work with, work with, compatible with, pair it, connect it, reset, error,
        stuck on, won t start, won t charge, tutorial, can anyone explain, any idea why,
        does anyone, which button, where s the, change my email, change my, export my,
        kiểu gì, thế nào vậy, như thế nào, thế nào ạ, cách sửa, cách tắt, cách làm, chỉ với,
        chỉ em, chỉ mình, ai biết cách, bác nào biết, hỏi chút, hỏi tí, có dùng được,
        dùng được không, có mất, mất dữ liệu không, bị đơ, báo lỗi, mang ra đâu, bao lâu thì,
        bao lâu phải, mấy tháng thì, thay lõi, lấy lại, không vào được, xài sao, dùng sao,
        sao vậy mọi người, có ai bị
    """,
}


def phrases_of(intent: Intent) -> list[str]:
    listed = PHRASES.get(intent, "").replace("\n", " ").split(",")
    return [" ".join(phrase.split()) for phrase in listed if phrase.strip()]
