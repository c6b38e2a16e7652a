from __future__ import annotations

import pytest

from tests.cli.desk import Desk
from tests.command import HoldfastCommand


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    return Desk(holdfast_command)
