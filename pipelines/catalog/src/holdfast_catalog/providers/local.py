"""The local catalogue: a table of products that is searched without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.pipeline import Context, Row
from holdfast_catalog.normalising.vocabulary import phrases_in, synonyms
from holdfast_catalog.normalising.words import compact
from holdfast_catalog.offers import Offer
from holdfast_catalog.providers.contract import Shop
from holdfast_catalog.strategies import Query

_MOST_OFFERS = 20
_MOST_OTHER_WORDS = 16
LOCAL = Shop("local", "local", priority=0)


@dataclass(frozen=True, slots=True)
class LocalCatalog:
    shop: Shop = LOCAL

    def answers(self, query: Query) -> bool:
        return True

    async def offers(self, query: Query, ctx: Context) -> Sequence[Offer]:
        if not query.words:
            exact = {"gtin": query.gtin, "sku": query.sku or None, "model": _model_key(query)}
            rows = await ctx.read("catalog_by_identifier", {**exact, "limit": _MOST_OFFERS})
        else:
            words = (*query.words, *other_words(query.words))
            params = {"words": search_words(words), "limit": _MOST_OFFERS}
            rows = await ctx.read("catalog_by_words", params) or await _alike(query, ctx)
        return [_offer(row, self.shop) for row in rows]


async def _alike(query: Query, ctx: Context) -> list[Row]:
    """Returns products with similar words, if the database can find them."""
    if not (await ctx.read("catalog_finds_misspelt"))[0]["found"]:
        return []
    params = {"text": " ".join(query.words), "limit": _MOST_OFFERS}
    return list(await ctx.read("catalog_by_likeness", params))


def _model_key(query: Query) -> str | None:
    return compact(query.model) or None


def other_words(words: Sequence[str]) -> list[str]:
    """Returns other names that shops may use, and neighbours written as one: night stand as
    nightstand."""
    names = [name for word in words for name in synonyms(word)]
    names += [name for each in phrases_in(tuple(words)).values() for name in each]
    joined = [f"{a}{b}" for a, b in pairwise(words) if a.isalpha() and b.isalpha()]
    others = dict.fromkeys([*(word for name in sorted(names) for word in name), *joined])
    return [word for word in others if word not in words][:_MOST_OTHER_WORDS]


def search_words(words: Sequence[str]) -> str:
    """Returns a search for any of these words.

    Both databases accept them in quotes: they are letters, digits and points."""
    return " OR ".join(f'"{word}"' for word in words)


def _offer(row: Row, shop: Shop) -> Offer:
    return Offer(
        provider=shop.name,
        title=row["title"],
        price_minor=row["price_minor"],
        currency=row["currency"],
        brand=row["brand"],
        model=row["model"],
        gtin=row["gtin"],
        sku=row["sku"],
        url=row["url"],
        shop=row["source"],
        condition=row["condition"],
        trusted=bool(row["trusted"]),
    )
