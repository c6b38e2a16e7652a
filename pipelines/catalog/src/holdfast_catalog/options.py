"""The settings of catalog."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class CatalogOptions:
    currency: str = setting("USD", "Currency of prices that do not name one.")
    accept_score: float = setting(
        0.70, "Score from which an offer counts as the same product.", 0.0, 1.0
    )
    review_score: float = setting(
        0.40, "Score from which an offer is shown to a person for review.", 0.0, 1.0
    )
    price_tolerance: float = setting(
        0.20, "How far offers of one product may differ in price, as a share.", 0.0, 1.0
    )
    bait_share: float = setting(
        0.50, "An offer below this share of the median of its product is taken for bait.", 0.0, 1.0
    )
    max_candidates: int = setting(10, "Offers kept with a result.", 1, 100)
    strategies_per_attempt: int = setting(2, "Query strategies tried in one attempt.", 1, 4)
    attempts_not_found: int = setting(2, "Attempts at a product that no shop has.", 1, 20)
    not_found_seconds: float = setting(
        1.0, "Delay before a product that was not found is looked up again.", 0.0, 604_800
    )
    timeout_seconds: float = setting(20.0, "Longest wait for a shop.", 0.01, 600)
    silence_seconds: float = setting(
        1800.0, "How long rows wait for a shop that answers no request.", 0.0, 604_800
    )
    max_reply_bytes: int = setting(4 * 1024 * 1024, "Largest reply of a shop.", 1024, 10**9)
    providers_seconds: float = setting(
        5.0, "How long workers use the list of shops before they read it again.", 0.0, 3600
    )
    photo_megabytes: int = setting(
        1500, "Memory of the process that opens photographs and reads text on them.", 100, 10**6
    )
    photo_pixels: int = setting(
        50_000_000, "Largest photograph; a JPEG counts at the size it is decoded at.", 1, 10**9
    )
    photo_seconds: float = setting(60.0, "Longest time for one photograph.", 0.1, 3600)
    read_text: bool = setting(True, "Read text on photographs without a barcode.")
