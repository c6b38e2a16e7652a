"""Builds accounts and quotas from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.clock import Clock
from holdfast.configuration import Settings
from holdfast.features.accounts.accounts import Accounts
from holdfast.features.accounts.second_factors import SecondFactors

if TYPE_CHECKING:
    from holdfast.features.console import Console


def accounts_of(console: Console, settings: Settings, clock: Clock) -> Accounts:
    return Accounts(
        console.people,
        second_factors_of(console, clock),
        settings.sessions,
    )


def second_factors_of(console: Console, clock: Clock) -> SecondFactors:
    return SecondFactors(console.store.database, clock)
