from pathlib import Path

from holdfast.server.reference import reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def test_the_page_is_what_the_routes_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "run: python -m holdfast.server.reference > docs/reference/api.md"
    )
