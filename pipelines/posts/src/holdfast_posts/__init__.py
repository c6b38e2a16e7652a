"""Posts: crawled posts of social media, from events of crawlers and batches in an object store."""

from holdfast.extension import Extension
from holdfast.flags import FlagKind, FlagSpec

EXTENSION = Extension(
    name="posts",
    package=__name__,
    help="Posts of social media from crawler events.",
    pipeline="pipeline:Posts",
    options="options:PostsOptions",
    commands="commands:app",
    web="web:PACK",
    metrics="metrics:PostsMetrics",
    demo="demo:DEMO",
    consumers="consumers:consumers",
    events={
        "posts.odd": ("A batch was processed although something is odd.", ("key", "warning")),
    },
    flags=(
        FlagSpec(
            "posts_new_mode",
            "Events with a batch (`data.collected`) are processed; otherwise parked.",
            "new_mode_enabled",
        ),
        FlagSpec(
            "posts_legacy_mode",
            "Legacy messages (a reference to one post, or a post) are processed; otherwise parked.",
            "legacy_mode_enabled",
        ),
        FlagSpec(
            "posts_canary",
            "Share of crawler jobs whose events are processed while the new mode is on; the"
            " others are parked.",
            kind=FlagKind.PERCENTAGE,
            default=100,
        ),
        FlagSpec(
            "posts_shadow",
            "Events that are parked are also analysed and compared with what is stored, without"
            " being stored.",
            default=False,
        ),
    ),
)
