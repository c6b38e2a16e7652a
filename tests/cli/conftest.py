from __future__ import annotations

import pytest

from tests.cli.desk import Desk
from tests.command import HoldfastCommand
from tests.fixtures import fresh_database
from tests.fleet import EVERY_MODE


@pytest.fixture(params=EVERY_MODE)
def database_url(request: pytest.FixtureRequest) -> str:
    return fresh_database(request)


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    return Desk(holdfast_command)
