"""The scenarios of every verb, from all modules."""

from __future__ import annotations

from tests.console import scenarios as console_scenarios
from tests.store import (
    adapter_scenarios,
    deletion_scenarios,
    facility_scenarios,
    message_scenarios,
    planning_scenarios,
    standing_scenarios,
    upkeep_scenarios,
)
from tests.store.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Scenario",
    "adapter_scenarios",
    "console_scenarios",
    "deletion_scenarios",
    "facility_scenarios",
    "message_scenarios",
    "planning_scenarios",
    "standing_scenarios",
    "upkeep_scenarios",
]

# In one order, whichever test imported a module of them first: processes name them by number.
SCENARIOS.sort(key=lambda scenario: (scenario.verb, scenario.act.__module__))
