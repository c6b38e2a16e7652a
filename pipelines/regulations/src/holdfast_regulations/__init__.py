"""Regulations: finds every URL of a source, fetches politely, keeps what was seen as evidence.

`sources_file` reads what a source is; `runs` and `planning` what a run does; `walking` and
`discovery` find the URLs, by `sitemap`, `archive` and `pagination`; `admission` and `dates` decide
which are wanted; `canonical` names them; `fetching`, `content` and `extract` read what was fetched;
`saving` and `bodies` store it; `warc` exports it.
"""

from holdfast.extension import Extension

EXTENSION = Extension(
    name="regulations",
    package=__name__,
    help="Regulatory sources: discovery, polite fetching, evidence.",
    pipeline="pipeline:Regulations",
    options="options:RegulationsOptions",
    commands="commands:app",
    web="web:PACK",
    demo="demo:DEMO",
    events={
        "regulations.progress": (
            "How far a run is.",
            ("job_id", "discovered", "max_urls", "queued", "skipped", "errors"),
        ),
    },
    starts_off=True,
)
