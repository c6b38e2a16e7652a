"""The settings of regulations, and the options of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from holdfast.options import Option
from holdfast.settings import setting
from holdfast_regulations.content import Ages

PIPELINE = "regulations"
KIB = 1024
_RUN_CAP = 1000
#: What `mode` of a run can be: how URLs are listed, or known documents that are due again.
RECHECK = "recheck"
MODES = ("sitemap", "archive", "pagination", RECHECK)
#: The streams of the daily pass, separate from those of backfills.
SENTINEL_MODE = "sentinel"


@dataclass(frozen=True, slots=True)
class RegulationsOptions:
    sources: str = setting(
        "", "Path of a sources file. Default: the Croatian sources that come with Holdfast.",
        shown="none",
    )  # fmt: skip
    max_urls_per_run: int | None = setting(
        None,
        "Maximum number of new URLs in a run, unless it says otherwise.",
        1,
        10_000_000,
        follows="max_urls_per_run",
        shown="`1000`, or `MAX_URLS_PER_RUN`",
    )
    max_urls_per_source: int | None = setting(
        None,
        "Maximum number of new URLs of one source in a run, unless it says otherwise.",
        1,
        10_000_000,
        follows="max_urls_per_source",
        shown="that of the source, `500`, or `MAX_URLS_PER_SOURCE`",
    )
    concurrency: int = setting(2, "Sources that a run reads at once.", 1, 64)
    database_bytes: int = setting(
        256 * KIB,
        "Largest compressed body that is stored in the database; larger ones go to the file store.",
        0,
        64 * KIB * KIB,
    )
    progress_items: int = setting(50, "URLs between two progress events of a run.", 1, 1_000_000)
    aging_days: int = setting(30, "Days after which evidence is AGING.", 1, 36_500)
    stale_days: int = setting(90, "Days after which evidence is STALE.", 1, 36_500)
    expired_days: int = setting(
        90, "Days after which a document that cannot be fetched is EXPIRED.", 1, 36_500
    )

    @property
    def run_cap(self) -> int:
        return self.max_urls_per_run or _RUN_CAP

    @property
    def ages(self) -> Ages:
        return Ages(
            timedelta(days=self.aging_days),
            timedelta(days=self.stale_days),
            timedelta(days=self.expired_days),
        )


RUN_OPTIONS = (
    Option("sources", help="Slugs of the sources, separated by commas. Default: all."),
    Option("mode", choices=MODES, help="How URLs are found. Default: as the source says."),
    Option("lane", choices=("BACKFILL", "SENTINEL"), default="BACKFILL", help="Which pass."),
    Option("date_from", help="First day of publication, YYYY-MM-DD, in Zagreb."),
    Option("date_to", help="Last day of publication, YYYY-MM-DD, in Zagreb."),
    Option("max_urls", int, help="Maximum number of new URLs in the run."),
    Option("max_urls_per_source", int, help="Maximum number of new URLs of one source."),
    Option("concurrency", int, help="Sources that are read at once."),
    Option("delay_ms", int, help="Milliseconds between two requests to a host, if the gate's own"
           " minimum is lower."),
    Option("recheck_days", int, help="With the mode recheck: fetch documents again that were last"
           " verified this many days ago."),
    Option("restart", bool, default=False, help="Begin at the beginning, not where the last run"
           " stopped."),
    Option("run_by", help="Who asked for the run."),
)  # fmt: skip
