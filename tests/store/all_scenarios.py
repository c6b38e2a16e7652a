"""The scenarios of every verb, from wherever they are told."""

from __future__ import annotations

from tests.store import (
    facility_scenarios,
    message_scenarios,
    people_scenarios,
    planning_scenarios,
    upkeep_scenarios,
)
from tests.store.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Scenario",
    "facility_scenarios",
    "message_scenarios",
    "people_scenarios",
    "planning_scenarios",
    "upkeep_scenarios",
]
