"""Decides whether a word can be Vietnamese that is written without its marks.

A Vietnamese syllable is one of few beginnings and one of few rhymes; most English words are not.
"""

from __future__ import annotations

from functools import lru_cache

_BEGINNINGS = frozenset(
    str.split("b c ch d g gh gi h k kh l m n ng ngh nh p ph qu r s t th tr v x")
) | {""}
_RHYMES = frozenset(
    str.split(
        """
    a ac ach ai am an ang anh ao ap at au ay e ec em en eng eo ep et eu enh ech i ia ich iec iem
    ien ieng iep iet ieu im in inh ip it iu o oa oac oach oai oam oan oang oanh oao oat oay oc oe
    oen oeo oet oi om on ong oong op ot u ua uan uang uat uay uc ue uenh ui um un ung uo uoc uoi
    uom uon uong uop uot uou up ut uu uy uya uych uyen uyet uynh uyt uyu uynh y yem yen yeng yet
    yeu
    """
    )
)


@lru_cache(4096)
def is_syllable(word: str) -> bool:
    return any(
        word[:length] in _BEGINNINGS and word[length:] in _RHYMES
        for length in range(min(4, len(word)))
    )
