"""The settings of extensions: their names, where they are read, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.configuration import Settings, every_setting, load_settings
from holdfast.errors import PipelineError, SettingsError
from holdfast.extension import Extension, installed
from holdfast.settings import Group
from holdfast.settings.groups import Groups
from holdfast.settings.reference import extension_table

OPTIONS = """
from __future__ import annotations
from dataclasses import dataclass
from holdfast.settings import setting

@dataclass(frozen=True)
class Options:
    page_size: int = setting(100, "Rows of one request.", 1, 1000, alias="STATION_PAGE_SIZE")
    token: str = setting("", "Sent to the stations.", kind="header", secret=True)
    row_bytes: int = setting(5, "Largest row.", 1, 10**9, follows="max_input_bytes")
    unread: int = 7
"""


@pytest.fixture
def groups_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Groups]]:
    """`groups_of(weather=OPTIONS)`: extensions whose options are declared so."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(**options: str | None) -> Groups:
        groups = {}
        for name, source in options.items():
            folder = tmp_path / f"package_of_{name}"
            folder.mkdir()
            (folder / "__init__.py").touch()
            (folder / "options.py").write_text(source or "")
            part = None if source is None else "options:Options"
            extension = Extension(name, folder.name, "Help.", "pipeline:P", options=part)
            groups[name] = Group(extension)
        return lambda: groups

    yield make
    for name in [name for name in sys.modules if name.startswith("package_of_")]:
        del sys.modules[name]


@pytest.fixture
def weather(groups_of: Callable[..., Groups]) -> Groups:
    return groups_of(weather=OPTIONS)


def problems_of(environ: dict[str, str], groups: Groups) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ, groups)
    return caught.value.message


def test_names_carry_the_extension_and_an_alias_does_not(weather: Groups) -> None:
    settings = load_settings({"HOLDFAST_WEATHER_PAGE_SIZE": "20"}, weather)
    assert settings.of("weather").page_size == 20
    assert load_settings({"STATION_PAGE_SIZE": "30"}, weather).of("weather").page_size == 30
    assert load_settings({}, weather).of("weather").page_size == 100


def test_two_names_of_one_setting_may_not_differ(weather: Groups) -> None:
    environ = {"HOLDFAST_WEATHER_PAGE_SIZE": "20", "STATION_PAGE_SIZE": "30"}
    assert "are the same setting, but have different values" in problems_of(environ, weather)


def test_default_follows_a_core_setting(weather: Groups) -> None:
    settings = load_settings({"HOLDFAST_MAX_INPUT_BYTES": "777"}, weather)
    assert settings.of("weather").row_bytes == 777
    assert load_settings({"HOLDFAST_WEATHER_ROW_BYTES": "9"}, weather).of("weather").row_bytes == 9


def test_options_are_imported_only_where_they_are_wanted(weather: Groups) -> None:
    load_settings({"HOLDFAST_CLAIM_MAX": "7"}, weather)
    assert "package_of_weather.options" not in sys.modules
    load_settings({"HOLDFAST_WEATHER_TOKEN": "t"}, weather)
    assert "package_of_weather.options" in sys.modules


def test_extensions_are_not_looked_up_for_core_names() -> None:
    def refuse() -> dict[str, Group]:
        raise AssertionError("looked up")

    assert load_settings(
        {"HOLDFAST_CLAIM_MAX": "7", "HOLDFAST_FAULT": "a/b"}, refuse
    ).claim.max_items


def test_unknown_setting_of_an_extension_is_refused_with_the_nearest(weather: Groups) -> None:
    assert problems_of({"HOLDFAST_WEATHER_PAGE_SZE": "2"}, weather) == (
        "HOLDFAST_WEATHER_PAGE_SZE is not a setting of the extension weather; "
        "did you mean HOLDFAST_WEATHER_PAGE_SIZE?"
    )
    assert problems_of({"HOLDFAST_WEATHER_UNREAD": "2"}, weather).startswith(
        "HOLDFAST_WEATHER_UNREAD is not a setting of the extension weather"
    )


def test_setting_of_an_extension_that_is_not_installed_is_refused(weather: Groups) -> None:
    assert problems_of({"HOLDFAST_TIDES_XYZZY": "2"}, weather) == (
        "HOLDFAST_TIDES_XYZZY is not a setting; no installed extension has it (installed: weather)"
    )


def test_mistyped_extension_is_suggested(weather: Groups) -> None:
    message = problems_of({"HOLDFAST_WETHER_PAGE_SIZE": "2"}, weather)
    assert message.endswith("did you mean HOLDFAST_WEATHER_PAGE_SIZE?")


def test_every_problem_of_core_and_extension_is_listed_at_once(weather: Groups) -> None:
    message = problems_of(
        {"HOLDFAST_CLAIM_MAX": "x", "HOLDFAST_WEATHER_PAGE_SIZE": "0", "STATION_PAGE_SIZE": "y"},
        weather,
    )
    assert message.splitlines()[0] == "3 settings are wrong:"


def test_bad_alias_is_refused_when_the_group_is_read(weather: Groups) -> None:
    settings = load_settings({"STATION_PAGE_SIZE": "y"}, weather)
    with pytest.raises(SettingsError, match="STATION_PAGE_SIZE must be a whole number"):
        settings.of("weather")


def test_secret_is_not_shown(weather: Groups) -> None:
    settings = load_settings({"HOLDFAST_WEATHER_TOKEN": "hush"}, weather)
    assert "hush" not in f"{settings!r} {settings.of('weather')!r}"
    assert "hush" not in problems_of({"HOLDFAST_WEATHER_TOKEN": "hush\x00"}, weather)


def test_extension_without_options_has_no_settings(groups_of: Callable[..., Groups]) -> None:
    bare = groups_of(bare=None)
    assert load_settings({}, bare).of("bare") is None
    message = problems_of({"HOLDFAST_BARE_SIZE": "1"}, bare)
    assert message == "HOLDFAST_BARE_SIZE is not a setting of the extension bare"


def test_name_declared_twice_is_refused(groups_of: Callable[..., Groups]) -> None:
    core = OPTIONS.replace("page_size", "timeout_seconds")
    with pytest.raises(PipelineError, match="HOLDFAST_HTTP_TIMEOUT_SECONDS is a setting of both"):
        every_setting(groups_of(http=core)())
    with pytest.raises(PipelineError, match="STATION_PAGE_SIZE is a setting of both a and b"):
        every_setting(groups_of(a=OPTIONS, b=OPTIONS)())


def test_annotation_that_cannot_be_read_is_refused(groups_of: Callable[..., Groups]) -> None:
    odd = groups_of(odd=OPTIONS.replace("page_size: int", "page_size: complex"))
    with pytest.raises(PipelineError, match="HOLDFAST_ODD_PAGE_SIZE cannot be a complex"):
        load_settings({}, odd).of("odd")


def test_annotations_need_not_be_postponed(groups_of: Callable[..., Groups]) -> None:
    eager = groups_of(eager=OPTIONS.replace("from __future__ import annotations", ""))
    environ = {"HOLDFAST_EAGER_PAGE_SIZE": "20"}
    assert load_settings(environ, eager).of("eager").page_size == 20


def test_options_that_are_not_a_dataclass_are_refused(groups_of: Callable[..., Groups]) -> None:
    with pytest.raises(PipelineError, match="options of the extension odd are not a dataclass"):
        load_settings({}, groups_of(odd="Options = 7")).of("odd")


def test_reference_of_an_extension_has_its_settings(weather: Groups) -> None:
    page = extension_table(weather()["weather"])
    assert "| `HOLDFAST_WEATHER_PAGE_SIZE` | `STATION_PAGE_SIZE` | `100` |" in page
    assert "that of `HOLDFAST_MAX_INPUT_BYTES`" in page


@pytest.mark.parametrize("name", installed())
def test_defaults_of_an_installed_extension_pass_their_bounds(name: str) -> None:
    options = Settings().of(name)
    for each in Group(installed()[name]).settings:
        value = getattr(options, each.field)
        assert each.help.endswith("."), each.name
        if value not in (None, "", ()):
            assert each.read(str(value)) == value, each.name
