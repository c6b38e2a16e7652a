"""An installed extension: its commands, settings, pages, metrics, flags and demo are there without
a line about it in the core."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.extension.conftest import Installed
from tests.ports import free_port
from tests.signing_in import sign_in

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def test_help_lists_the_extension_without_importing_it(weather: Installed) -> None:
    for part in ("commands", "pipeline", "options"):
        (weather.package / f"{part}.py").write_text("raise RuntimeError('imported')")
    code, output, errors = weather.run("--help")
    assert code == 0, errors
    assert re.search(r"^  weather +Readings of weather stations\.$", output, re.MULTILINE)


def test_commands_are_run_with_the_settings_of_the_extension(weather: Installed) -> None:
    assert weather.run("weather", "count")[1] == "2\n"
    assert weather.run("weather", "count", env={"STATION_COUNT": "7"})[1] == "7\n"
    code, output, _ = weather.run("weather", "--help")
    assert code == 0
    assert "Readings of weather stations." in output and "Show the number of stations." in output


def test_job_of_an_extension_is_run_by_its_name(weather: Installed) -> None:
    code, _, errors = weather.run("run", "weather", "--out", "readings.jsonl")
    assert code == 1 and "holdfast flag set weather_enabled on" in errors
    assert weather.run("flag", "set", "weather_enabled", "on")[0] == 0
    code, _, errors = weather.run("run", "weather", "--out", "readings.jsonl")
    assert code == 0, errors
    code, output, errors = weather.run("items", "1", "--json")
    assert code == 0, errors
    assert len(json.loads(output)) == 2
    assert json.loads(weather.run("weather", "readings", "--json")[1]) == [[1, 21], [2, 22]]


def test_settings_are_listed_without_secrets(weather: Installed) -> None:
    given = {"HOLDFAST_WEATHER_TOKEN": "hush", "HOLDFAST_WEATHER_STATIONS": "3"}
    code, output, errors = weather.run("settings", "--json", env=given)
    assert code == 0, errors
    values = json.loads(output)
    assert (values["HOLDFAST_WEATHER_STATIONS"], values["HOLDFAST_WEATHER_TOKEN"]) == ("3", "***")
    assert values["HOLDFAST_MEETINGS_API_KEY"] == ""


def test_unknown_setting_of_the_extension_is_refused_by_every_command(weather: Installed) -> None:
    code, _, errors = weather.run("doctor", env={"HOLDFAST_WEATHER_STATION": "3"})
    assert code == 3
    code, _, errors = weather.run("jobs", env={"HOLDFAST_WEATHER_STATION": "3"})
    assert code == 1
    assert "did you mean HOLDFAST_WEATHER_STATIONS?" in errors


@pytest.mark.parametrize(
    ("arguments", "file", "complaint"),
    [
        (["--help"], "__init__", "weather of the package weather-toy cannot be imported"),
        (["weather", "count"], "commands", "weather of weather_toy is broken"),
        (["run", "weather"], "pipeline", "weather of weather_toy is broken"),
    ],
)
def test_broken_extension_is_named_and_other_commands_work(
    weather: Installed, arguments: list[str], file: str, complaint: str
) -> None:
    (weather.package / f"{file}.py").write_text("1 / 0")
    code, _, errors = weather.run(*arguments)
    assert code == 1
    assert complaint in errors and "ZeroDivisionError" in errors
    assert "Traceback" not in errors
    assert weather.run("run", "--help")[0] == 0


@pytest.mark.parametrize("part", ["pipeline", "commands", "web"])
def test_doctor_names_a_part_that_cannot_be_imported(weather: Installed, part: str) -> None:
    (weather.package / f"{part}.py").write_text("1 / 0")
    code, output, _ = weather.run("doctor", "--json")
    assert code == 3
    texts = {found["what"]: found["text"] for found in json.loads(output) if not found["ok"]}
    assert f"its {part}, {part}:" in texts["extensions"]


def test_extension_with_the_name_of_a_command_is_refused(weather: Installed) -> None:
    about = weather.package.parent / "weather_toy-1.0.dist-info" / "entry_points.txt"
    about.write_text(about.read_text().replace("weather =", "doctor ="))
    manifest = weather.package / "__init__.py"
    manifest.write_text(manifest.read_text().replace('"weather', '"doctor'))
    code, _, errors = weather.run("--help")
    assert code == 1
    assert (
        "the extension doctor of the package weather_toy has the same name as a command" in errors
    )
    assert weather.run("doctor", "--help")[0] == 0


@pytest.fixture
def served(weather: Installed) -> Iterator[httpx2.Client]:
    """An admin's browser, where the extension is served and a job of it was run."""
    assert weather.run("migrate", "up")[0] == 0
    assert weather.run("flag", "set", "weather_enabled", "on")[0] == 0
    assert weather.run("run", "weather")[0] == 0
    process = weather.start("api", "weather", "--port", "0")
    assert process.stderr is not None
    links = (re.search(r"http\S+/login/\S+", line) for line in process.stderr)
    link = next(found[0] for found in links if found)
    with httpx2.Client(base_url=link.partition("/login/")[0], timeout=30) as client:
        assert sign_in(client, link).status_code == 303
        yield client
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)


def test_pages_routes_flags_and_metrics_are_served(served: httpx2.Client) -> None:
    page = served.get("/weather").text
    assert "Harbour, hill" in page
    assert "Station 2: 22 °C" in page
    assert served.get("/static/weather/weather.css").text.startswith(".readings")
    assert 'href="/weather"' in page and '<path d="M2 8h12"/>' in page
    assert served.get("/stations/count").json() == 2
    problem = served.get("/stations/radar")
    assert problem.headers["content-type"] == "application/problem+json"
    assert problem.json()["title"] and problem.status_code == 404
    assert "holdfast_weather_readings_total" in served.get("/metrics").text
    listed = served.get("/api/flags").json()["flags"]
    flags: dict[str, Any] = {flag["name"]: flag for flag in listed}
    assert flags["weather_radar"]["setting"] == "HOLDFAST_WEATHER_RADAR_ENABLED"
    csrf = {"X-CSRF-Token": served.get("/api/session").json()["csrfToken"]}
    off = {"value": False}
    assert served.put("/api/flags/weather_radar", json=off, headers=csrf).status_code == 204
    assert served.get("/stations/radar").status_code == 503
    assert served.put("/api/flags/weather_rain", json=off, headers=csrf).status_code == 404


def test_demo_world_answers_for_the_extension(weather: Installed) -> None:
    port = free_port()
    world = weather.start_module("holdfast.demo.world", str(port))
    url = f"http://127.0.0.1:{port}"
    answered = until_answered(f"{url}/weather/stations/1")
    assert answered.json() == {"degrees": 21}
    assert httpx2.get(f"{url}/weather/stations/9").status_code == 404
    assert httpx2.get(f"{url}/nothing/here").status_code == 404
    world.communicate("", timeout=30)


def until_answered(url: str) -> httpx2.Response:
    end = time.monotonic() + 30
    while True:
        try:
            return httpx2.get(url)
        except httpx2.ConnectError:
            assert time.monotonic() < end
            time.sleep(0.05)
