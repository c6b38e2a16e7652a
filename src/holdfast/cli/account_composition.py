"""Builds accounts and quotas from the settings."""

from __future__ import annotations

from holdfast.clock import Clock
from holdfast.configuration import Settings
from holdfast.console import Console
from holdfast.console.accounts import Accounts
from holdfast.console.quotas import Amounts
from holdfast.console.second_factors import SecondFactors


def accounts_of(console: Console, settings: Settings, clock: Clock) -> Accounts:
    return Accounts(
        console.people,
        second_factors_of(console, clock),
        settings.session_hours * 3600.0,
        settings.session_idle_hours * 3600.0,
    )


def limits_of(settings: Settings) -> Amounts:
    """Of what comes over HTTP. The command line has none: it could change the settings."""
    return Amounts(
        files=settings.quota_files,
        bytes=settings.quota_bytes,
        exports=settings.quota_exports,
        jobs=settings.quota_jobs,
        items=settings.quota_items,
        tokens=settings.quota_tokens,
    )


def second_factors_of(console: Console, clock: Clock) -> SecondFactors:
    return SecondFactors(console.store.database, clock)
