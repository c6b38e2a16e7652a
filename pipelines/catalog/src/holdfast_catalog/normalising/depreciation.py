"""Defines categories of contents and how much of their value is lost, in percent."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast_catalog.normalising.words import compact, words_of


@dataclass(frozen=True, slots=True)
class Category:
    code: str
    name: str
    percent: int
    words: frozenset[str]


def _category(code: str, name: str, percent: int, words: str) -> Category:
    return Category(code, name, percent, frozenset(words.split()))


OTHER = _category("OTH", "Other", 20, "")
CATEGORIES = (
    _category("ELC", "Electronics", 30, "tv television monitor laptop notebook tablet phone"
              " smartphone camera headphones earbuds speaker soundbar router console playstation"
              " xbox ipad iphone macbook printer electronics computer computers ssd drive watch"),
    _category("APL", "Appliances", 20, "refrigerator fridge freezer washer dryer dishwasher oven"
              " range microwave blender mixer toaster kettle vacuum appliance appliances fryer"
              " cooker coffee espresso juicer"),
    _category("FRN", "Furniture", 10, "sofa couch chair table desk bed mattress dresser wardrobe"
              " bookcase shelf furniture stool bench ottoman cabinet nightstand"),
    _category("CLO", "Clothing", 40, "shirt pants jeans jacket coat dress shoes boots sneakers"
              " socks hat clothing apparel sweater hoodie skirt gloves"),
    _category("KIT", "Kitchenware", 15, "pan pot knife knives cookware plate bowl cup mug glass"
              " cutlery kitchen skillet spatula"),
    _category("TOL", "Tools", 15, "drill saw hammer wrench screwdriver tool tools sander grinder"
              " mower trimmer ladder compressor"),
    _category("SPT", "Sporting goods", 25, "bike bicycle treadmill tent golf ski skis tennis"
              " kayak helmet dumbbell sport sports racket"),
    _category("TOY", "Toys and games", 35, "toy toys lego doll puzzle game games board"),
    _category("BKS", "Books and media", 30, "book books dvd cd vinyl novel hardcover paperback"),
    _category("LIN", "Linens", 35, "sheet sheets towel towels blanket pillow curtain duvet linen"
              " linens rug comforter"),
    _category("JWL", "Jewelry", 0, "ring necklace bracelet earrings jewelry jewellery gold"),
    _category("BTY", "Health and beauty", 50, "shampoo perfume lipstick cream razor toothbrush"
              " lotion beauty cosmetics"),
)  # fmt: skip


def depreciation_of(category: str, text: str) -> Category:
    """Returns the given category, or that of the first word of the text that has one."""
    named = compact(category)
    for known in CATEGORIES:
        if named and named in (compact(known.name), known.code.casefold()):
            return known
    for word in (*words_of(category), *words_of(text)):
        for known in CATEGORIES:
            if word in known.words:
                return known
    return OTHER


def amount_of(total_minor: int, percent: int) -> int:
    """Returns the amount in minor units, rounded half up."""
    return (total_minor * percent * 2 + 100) // 200
