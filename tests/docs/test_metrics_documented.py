from pathlib import Path

from holdfast.cli.references import metrics_page
from holdfast.observe.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_every_metric_of_the_registry_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in Metrics().registry.collect()
    ]
    assert len(names) > 10
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_the_page_is_what_the_metrics_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page(), (
        "run: python -m holdfast.cli.references metrics > docs/reference/metrics.md"
    )
