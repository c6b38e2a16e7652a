"""A third party's package: built as a wheel, installed beside Holdfast's own wheel in an empty
environment, and used through the installed program."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.signing_in import sign_in
from tests.wheels import ROOT, Environment, run

THIRD_PARTY = Path(__file__).parent / "third_party"

pytestmark = pytest.mark.slow


class Site(Environment):
    """Holdfast and the third party's package, installed from wheels."""

    @contextmanager
    def signed_in(self, *arguments: str) -> Iterator[httpx2.Client]:
        """An admin's browser, while the command serves pages."""
        process = subprocess.Popen(
            [self.program, *arguments],
            cwd=self.work,
            env=self.variables(),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            links = (re.search(r"http\S+/login/\S+", line) for line in process.stderr)
            link = next(match[0] for match in links if match)
            with httpx2.Client(base_url=link.partition("/login/")[0], timeout=30) as client:
                assert sign_in(client, link).status_code == 303
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("installed"), [ROOT, THIRD_PARTY])


def test_wheel_of_a_third_party_is_used_beside_holdfast(environment: Site) -> None:
    where = "import holdfast, holdfast_tides; print(holdfast.__file__, holdfast_tides.__file__)"
    for path in run([environment.python, "-c", where], cwd=environment.work).split():
        assert Path(path).is_relative_to(environment.packages)

    assert re.search(r"^  tides +High tides of harbours\.$", environment.run("--help"), re.M)
    assert environment.run("tides", "highest") == "3.5\n"

    environment.run("migrate", "up")
    assert re.search(r"tides +empty .*not used here", environment.run("migrate", "status"))

    (environment.work / "harbours.csv").write_text("harbour\nBrest\nDover\n")
    environment.run("run", "tides", "harbours.csv", "--out", "heights.csv")
    results = (environment.work / "heights.csv").read_text()
    assert "Dover" in results and "3.5" in results
    assert environment.run("tides", "list") == "Brest 3.5\nDover 3.5\n"

    with environment.signed_in("api", "tides", "--port", "0") as browser:
        page = browser.get("/tides").text
    assert "<li>Dover: 3.5 m</li>" in page and 'href="/tides"' in page
    assert re.search(r"tides +1 .*up to date", environment.run("migrate", "status"))

    environment.run("migrate", "down", "tides", "base", "--yes")
    assert re.search(r"tides +empty .*not used here", environment.run("migrate", "status"))
