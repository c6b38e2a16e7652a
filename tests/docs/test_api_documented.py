from pathlib import Path

from holdfast.api.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def test_the_page_is_what_the_routes_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m holdfast.api.reference > docs/reference/api.md"
    )
