from pathlib import Path

from holdfast.cli.references import settings_page
from holdfast.configuration import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


def test_every_setting_and_alias_is_documented() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [name for each in SETTINGS for name in each.names]
    assert [name for name in names if f"| `{name}` |" not in page] == []


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == settings_page(), (
        "run: python -m holdfast.cli.references settings > docs/reference/settings.md"
    )
