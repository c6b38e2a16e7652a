"""Words and idioms of English posts that VADER lacks, and emoji that it reads literally.

Weights are as VADER's, -4 to 4."""

from __future__ import annotations


def _weighed(groups: dict[float, str]) -> dict[str, float]:
    return {
        " ".join(phrase.split()): weight
        for weight, phrases in groups.items()
        for phrase in phrases.split(",")
    }


WORDS = _weighed(
    {
        2.6: """
            goated, banger, bangers, flawless, delish, immaculate, stellar, obsessed, bussin,
            incredible, phenomenal, mindblowing, unbeatable, unmatched, heavenly, chefskiss,
            topnotch
        """,
        2.0: """
            slaps, slay, slayed, slaying, lit, comfy, comfiest, comfortable, cozy, cosy,
            underrated, yum, yummy, tasty, iconic, ate, cooked, gem, snappy, drooling, seamless,
            effortless, spotless, gorgeous, addictive, recommended, recommend, recommending, solid,
            w, dope, crisp, classy, sleek, stylish, refreshing, wholesome, hyped
        """,
        1.2: """
            smooth, smoother, smoothly, smoothest, soft, softer, sturdy, durable, reliable,
            upgrade, upgraded, survives, lightweight, affordable, quick, quickly, faster, quiet,
            quieter, early, spacious, intuitive, responsive, crispy, juicy, flavorful, flavourful,
            laughed, laughing, saved, savior, finally
        """,
        -1.4: """
            mid, meh, pricey, cancelled, canceled, cancelling, canceling, refund, delayed, pilling,
            peeling, faded, cracked, hospital, handcuffs, recall, leaked, melted, slow, slower,
            late, loud, noisy, missing, wrong, outdated, basic, dull, bored, forgettable, generic,
            soulless, repetitive, predictable, downgrade, downgraded, shrinking, smaller, thin,
            scratched, dented, cold, sticky, blurry, grainy, pixelated
        """,
        -2.0: """
            overhyped, overrated, overpriced, buggy, glitchy, laggy, lag, lags, lagging, crashes,
            crashed, crashing, clunky, flimsy, scratchy, cringe, cringey, ick, yikes, smh, bland,
            soggy, stale, tacky, ads, dealbreaker, unanswered, ghosted, paywall, freezes, freezing,
            flickers, flickering, crackles, crackle, crackling, drains, draining, overheats,
            overheating, leaks, leaking, broke, breaks, snapped, tore, torn, ripped, stained,
            moldy, mouldy, undercooked, overcooked, tasteless, uncomfortable, unreliable,
            unresponsive, inconsistent, misleading, overcharged, ruined, ruins, ruining, unhelpful,
            unfriendly, unprofessional, incompetent, shady, sketchy, snooze, l, ugly, bugs, bug,
            glitch, fail, fails, hungover, tanked, flop, flopped, cashgrab, underwhelming,
            underwhelmed, boring
        """,
        -2.6: """
            trash, unusable, scammy, scammed, scam, scammers, ripoff, boycott, lawsuit, poisoning,
            defective, dangerous, contaminated, vomiting, vomit, toxic, filthy, nasty, gross,
            disgusting, rubbish, junk, crap, useless, worthless, atrocious, abysmal, appalling,
            unacceptable, infuriating, fuming, livid, nightmare, exploded, explode, flames,
            bacteria, rashes, rash, fraudulent, counterfeit, rude
        """,
    }
)
#: Words that posts use without a feeling: to ask, to offer, to name a thing.
NO_FEELING = (
    "please", "pls", "plz", "help", "support", "share", "free", "want", "interested", "interest",
    "certain", "sure", "ready", "yes", "yeah", "no", "hand", "play", "plays", "number", "number's",
    "matter", "pay", "join", "value", "natural", "party", "award", "active", "increase", "create",
    "created", "top", "true", "clear", "clearly", "original", "energy", "ha", "lol", "lmao",
    "lost", "leave", "stop", "stopped", "stops", "drop", "drops", "cut", "low", "lower", "error",
    "alone", "demand", "promise", "promised", "legal", "gift", "win", "winning", "chance",
    "significant", "solution", "solutions", "resolve", "security", "secure", "safe", "vision",
    "cancel", "block", "limited", "limit", "hard", "harder", "fire", "shake", "growth", "safety",
    "straight", "warm",
)  # fmt: skip
PHRASES = _weighed(
    {
        3.0: """
            worth every penny, worth the money, zero complaints, no complaints, can t complain,
            exceeded my expectations, exceeded expectations, chef s kiss, would buy again,
            will buy again, buy again, best thing, blew me away, never looked back, 10 10,
            100 recommend, couldn t be happier, could not be happier, can t be happier,
            couldn t be better, couldn t ask for more, couldn t recommend more,
            can t recommend enough, can t recommend it enough, never been happier,
            never looked better, never felt better, never been better, never been this soft,
            never been easier, 5 stars, five stars, 5 star, second to none, not disappointed,
            never disappoints, never disappointed, doesn t disappoint, didn t disappoint,
            did not disappoint, won t regret, no regrets, don t regret, love love
        """,
        2.2: """
            worth it, game changer, life saver, made my day, made our day, made my week,
            made my whole week, deserve a raise, deserves a raise, highly recommend, can t stop,
            take my money, so worth, my go to, holy grail, hits different, no questions asked,
            no questions, thumbs up, pleasantly surprised, not bad, not bad at all, no issues,
            no problems, no problem at all, like day one, like new, still going strong,
            going strong, hands down, shout out, shoutout, hats off, well done, well made,
            well packed, with care, a day early, ahead of time, on time, ahead of schedule,
            runs like a dream, works like a charm, works perfectly, works great, really worked,
            actually works, just works, does the job, sorted everything, changed my life,
            changed my skin, changed my hair, changed the game, fixed my, saved my life,
            sleep through the night, here for it, i m in love, in love with, so much better,
            way better, much better, better than expected, better than i expected,
            need this in my life, my favorite, my favourite, top notch, spot on, on point,
            to die for, killed it, killing it, crazy good, insanely good, ridiculously good,
            sold me, hooked, must have, thank me later, best purchase, best decision, on fire,
            blown away, wow factor, lived up to the hype, worth the hype, worth the wait,
            keeps me warm, keeps getting better
        """,
        -1.6: """
            kind of miss, kinda miss, it s fine i guess, not what it used to be, used to be good,
            used to be better, used to love, nobody asked for, could be better,
            could have been better, not for me, gave up, barely, not impressed, unimpressed,
            not great, not good, not the best, nothing special, don t get the hype,
            don t understand the hype, not worth the hype, don t see the point, zero reasons,
            no reason to, all look the same, looks the same, looks like a, too many, too much,
            too long, too short, too small, too big, too slow, too loud, too expensive,
            miss the old, sad to see, sorry to see, breaks my heart, what happened to, fell asleep,
            second hand embarrassment, lost interest, running out of ideas, same old
        """,
        -2.4: """
            rip off, not worth, not worth it, isn t worth, wasn t worth, waste of, let down,
            sick of, tired of, fed up, never again, do better, what a joke, is a joke, shame on,
            don t buy, do not buy, stay away, avoid this, love that for me, good luck getting,
            thanks for nothing, hung up on me, hung up, never buying, never ordering,
            not even warm, wasn t even, isn t even, wish i hadn t, want my money back,
            get my money back, money back, what are you people doing, tastes like cardboard,
            tastes like plastic, tastes like water, smells like chemicals, smells weird,
            no hot water, wrong size, wrong item, wrong colour, falling apart, fell apart,
            fall apart, came off, fell off, never arrived, never came, nobody answers,
            no one answers, nobody replies, can t even, couldn t even, doesn t even, big mistake,
            such a mess, hot mess, red flag, red flags, gave me a headache
        """,
    }
)
#: Used instead of VADER's descriptions, of which "fire" and "skull" sound bad.
EMOJI = {
    "🔥": "excellent", "💀": "", "😭": "", "🤣": "haha", "😂": "haha", "👏": "", "🙌": "great",
    "💯": "excellent", "🤤": "yummy", "🙃": "annoying", "🙄": "annoying",
    "🥲": "sad", "😤": "angry", "😡": "furious", "🤬": "furious", "👎": "awful", "👍": "good",
    "🤮": "disgusting", "🤢": "disgusting", "🤡": "ridiculous", "✨": "", "👀": "", "🥺": "",
    "💕": "love", "🫶": "love", "🥰": "love", "😍": "love", "😻": "love", "🤩": "amazing",
    "🙏": "thanks", "😑": "annoying", "😒": "annoying", "🤦": "annoying", "😢": "sad", "💔": "sad",
    "😞": "sad", "😔": "sad", "🥳": "great", "👌": "good", "💪": "good", "👉": "", "👈": "",
    "😱": "", "🚀": "", "⚠": "", "🎁": "", "💰": "", "😅": "", "🤔": "",
    "😎": "good", "😋": "yummy",
}  # fmt: skip
