"""What VADER does not know of English posts: words of recent years, idioms, and emoji that it reads
literally. Weights as VADER's, -4 to 4."""

from __future__ import annotations


def _weighed(groups: dict[float, str]) -> dict[str, float]:
    return {
        " ".join(phrase.split()): weight
        for weight, phrases in groups.items()
        for phrase in phrases.split(",")
    }


WORDS = _weighed(
    {
        2.6: "goated, banger, flawless, delish, immaculate, stellar, obsessed, unreal, bussin",
        2.0: "slaps, slay, slayed, lit, comfy, comfiest, cozy, underrated, yum, yummy,"
        " iconic, ate, cooked, gem, snappy, drooling",
        1.2: "smooth, soft, sturdy, upgrade, upgraded, survives, lightweight, affordable, quick",
        -1.4: "mid, meh, pricey, cancelled, canceled, cancelling, canceling, refund, delayed,"
        " pilling, peeling, faded, cracked, hospital, handcuffs, recall, leaked, melted",
        -2.0: "overhyped, overrated, overpriced, buggy, glitchy, laggy, lags, crashes,"
        " crashing, clunky, flimsy, scratchy, cringe, ick, yikes, smh, bland, soggy,"
        " stale, tacky, ads, dealbreaker, unanswered, ghosted, paywall",
        -2.6: "trash, unusable, scammy, scammed, ripoff, boycott, lawsuit, poisoning,"
        " defective, dangerous, contaminated, vomiting",
    }
)
PHRASES = _weighed(
    {
        3.0: "worth every penny, zero complaints, no complaints, exceeded my expectations,"
        " chef s kiss, would buy again, best thing, blew me away, never looked back,"
        " 10 10, 100 recommend",
        2.2: "worth it, game changer, life saver, made my day, made my week, deserve a raise,"
        " highly recommend, can t stop, take my money, so worth, my go to, holy grail,"
        " hits different, no questions asked, thumbs up, pleasantly surprised",
        -1.6: "kind of miss, kinda miss, it s fine i guess, not what it used to be,"
        " used to be better, nobody asked for, could be better, not for me, gave up,"
        " barely, not impressed",
        -2.4: "rip off, not worth, waste of, let down, sick of, tired of, fed up, never again,"
        " do better, what a joke, is a joke, shame on, don t buy, do not buy, stay away,"
        " avoid this, love that for me, good luck getting, thanks for nothing",
    }
)
#: Instead of VADER's descriptions, of which "fire" and "skull" sound bad.
EMOJI = {
    "🔥": "excellent", "💀": "", "😭": "", "🤣": "haha", "😂": "haha", "👏": "", "🙌": "great",
    "💯": "excellent", "🤤": "yummy", "🙃": "annoying", "🙄": "annoying",
    "🥲": "sad", "😤": "angry",
    "🤮": "disgusting", "🤡": "ridiculous", "✨": "", "👀": "", "🥺": "",
    "💕": "love", "🫶": "love",
}  # fmt: skip
