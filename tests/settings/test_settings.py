import dataclasses
import os
from pathlib import Path

import pytest

from holdfast.configuration import HEADINGS, ORDERED, SETTINGS, Settings, load_settings
from holdfast.errors import SettingsError, UserError
from holdfast.settings.declared import KINDS
from holdfast.urls import mask_password, sqlite_file


def problems_of(environ: dict[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ)
    assert caught.value.hint == "`holdfast settings` lists every setting."
    return caught.value.message


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = load_settings({})
    assert settings == Settings()
    assert settings.database_url == "sqlite:///.holdfast/holdfast.db"
    assert settings.claim.max_items == 2000
    assert settings.rules.backfill_enabled is True
    assert settings.rules.max_items is None
    assert settings.workers == min(os.cpu_count() or 1, 4)
    assert settings.http.user_agent.startswith("holdfast/")


def test_the_defaults_pass_their_own_bounds() -> None:
    defaults = Settings()
    for each in SETTINGS:
        value = each.value_in(defaults)
        if value not in (None, ()):
            assert each.read(each.written_in(defaults)) == value, each.name


def test_every_number_has_bounds_and_every_setting_help() -> None:
    for each in SETTINGS:
        assert each.help.endswith("."), each.name
        assert (each.kind or each.annotation) in KINDS, each.name
        if each.annotation in ("int", "int | None", "float"):
            assert each.low is not None and each.high is not None, each.name


def test_the_tables_name_only_fields_that_exist() -> None:
    known = {each.bare for each in SETTINGS}
    assert {name for pair in ORDERED for name in pair} <= known
    assert set(HEADINGS) <= {each.field for each in SETTINGS}


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load_settings({}).claim.max_items = 1  # type: ignore[misc]


def test_values_are_read_by_prefixed_name() -> None:
    settings = load_settings(
        {
            "HOLDFAST_CLAIM_MAX": " 300 ",
            "HOLDFAST_SAFETY_FACTOR": "0.5",
            "HOLDFAST_HTTP_OBEY_ROBOTS": "Off",
            "HOLDFAST_DATA_DIR": "/srv/state",
            "HOLDFAST_LOG_LEVEL": "INFO",
            "HOLDFAST_MAX_URLS_PER_RUN": "50",
        }
    )
    assert settings.claim.max_items == 300
    assert settings.claim.safety == 0.5
    assert settings.http.obey_robots is False
    assert settings.data_dir == Path("/srv/state")
    assert settings.log_level == "info"
    assert settings.rules.max_items == 50


@pytest.mark.parametrize(
    "name",
    [
        "INGEST_MIN_ROWS",
        "INGEST_MAX_ROWS",
        "INGEST_MAX_BATCH_BYTES",
        "DB_P50_MS",
        "DB_P95_MS",
        "WORKER_TARGET_SLICE_MS",
        "CLAIM_MIN",
        "CLAIM_MAX",
        "SAFETY_FACTOR",
        "LOCK_FLOOR_MS",
        "LOCK_CAP_MS",
        "MAX_ATTEMPTS_ERROR",
        "MAX_ATTEMPTS_NOT_FOUND",
        "BACKFILL_ENABLED",
        "MAX_URLS_PER_RUN",
        "MAX_URLS_PER_SOURCE",
    ],
)
def test_other_names_are_read_without_prefix(name: str) -> None:
    each = next(each for each in SETTINGS if each.bare == name)
    assert each.names == (f"HOLDFAST_{name}", name)
    assert "nonsense" in problems_of({name: "nonsense"})


def test_an_alias_sets_the_value() -> None:
    assert load_settings({"CLAIM_MAX": "300"}).claim.max_items == 300
    assert load_settings({"BACKFILL_ENABLED": "false"}).rules.backfill_enabled is False


def test_a_name_without_prefix_that_is_not_an_alias_is_left_alone() -> None:
    assert load_settings({"OWNER": "somebody", "THREADS": "many"}) == Settings()


def test_both_names_with_the_same_value_are_accepted() -> None:
    given = {"HOLDFAST_BACKFILL_ENABLED": "0", "BACKFILL_ENABLED": "false"}
    assert load_settings(given).rules.backfill_enabled is False


def test_both_names_with_different_values_are_refused() -> None:
    assert problems_of({"HOLDFAST_CLAIM_MAX": "10", "CLAIM_MAX": "20"}) == (
        "HOLDFAST_CLAIM_MAX (10) and CLAIM_MAX (20) are the same setting, but have different values"
    )


def test_an_empty_value_counts_as_not_given() -> None:
    given = {"HOLDFAST_CLAIM_MAX": "", "CLAIM_MAX": "20", "HOLDFAST_DATABASE_URL": " "}
    assert load_settings(given).claim.max_items == 20


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("HOLDFAST_CLAM_MAX", "HOLDFAST_CLAIM_MAX"),
        ("HOLDFAST_DATABSE_URL", "HOLDFAST_DATABASE_URL"),
        ("HOLDFAST_DB_URL", "HOLDFAST_DATABASE_URL"),
        ("HOLDFAST_log_level", "HOLDFAST_LOG_LEVEL"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, nearest: str) -> None:
    assert problems_of({name: "1"}) == f"{name} is not a setting; did you mean {nearest}?"


def test_an_unknown_name_like_no_other_is_refused_without_a_suggestion() -> None:
    message = problems_of({"HOLDFAST_XYZZY": "1"})
    assert message.startswith("HOLDFAST_XYZZY is not a setting;")
    assert "did you mean" not in message


def test_the_name_that_sets_off_faults_in_tests_is_not_refused() -> None:
    assert load_settings({"HOLDFAST_FAULT": "settle.before_commit"}) == Settings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CLAIM_MAX", "0"),
        ("CLAIM_MAX", "1000001"),
        ("CLAIM_MAX", "many"),
        ("CLAIM_MAX", "1.5"),
        ("SAFETY_FACTOR", "nan"),
        ("SAFETY_FACTOR", "1.1"),
        ("ITEM_TIMEOUT_SECONDS", "inf"),
        ("HTTP_OBEY_ROBOTS", "perhaps"),
        ("LOG_FORMAT", "xml"),
        ("HTTP_USER_AGENT", "naïve"),
        ("HTTP_USER_AGENT", "one\r\nX-Other: two"),
        ("OWNER", "a\x00b"),
        ("DATA_DIR", "~nobody-of-this-name/state"),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_is_accepted(name: str, value: str) -> None:
    message = problems_of({f"HOLDFAST_{name}": value})
    assert message.startswith(f"HOLDFAST_{name} must be ")
    assert message.endswith(f", not {value!r}")


def test_bounds_stand_in_the_message() -> None:
    assert problems_of({"CLAIM_MAX": "0"}) == (
        "CLAIM_MAX must be a whole number from 1 to 1,000,000, not '0'"
    )


def test_every_problem_is_listed_at_once() -> None:
    message = problems_of(
        {"HOLDFAST_CLAM_MAX": "1", "THREADS": "x", "HOLDFAST_THREADS": "x", "CLAIM_MIN": "9000"}
    )
    assert message.splitlines() == [
        "3 settings are wrong:",
        "  - HOLDFAST_CLAM_MAX is not a setting; did you mean HOLDFAST_CLAIM_MAX?",
        "  - HOLDFAST_THREADS must be a whole number from 1 to 1,000, not 'x'",
        "  - HOLDFAST_CLAIM_MIN (9000) must not be greater than HOLDFAST_CLAIM_MAX (2000)",
    ]


def test_a_settings_error_is_shown_without_a_stack_trace() -> None:
    assert issubclass(SettingsError, UserError)


@pytest.mark.parametrize(("low", "high"), ORDERED)
def test_pairs_must_be_in_order(low: str, high: str) -> None:
    bounds = {each.bare: each for each in SETTINGS}
    top, bottom = bounds[low].high, bounds[high].low
    given = {bounds[low].name: str(top), bounds[high].name: str(bottom)}
    assert f"must not be greater than {bounds[high].name} (" in problems_of(given)


def test_a_value_that_cannot_be_read_is_not_compared_with_another() -> None:
    assert "above" not in problems_of({"CLAIM_MAX": "x", "CLAIM_MIN": "9000"})


def test_the_default_database_is_in_the_data_folder() -> None:
    settings = load_settings({"HOLDFAST_DATA_DIR": "/srv/state"})
    assert settings.database_url == "sqlite:////srv/state/holdfast.db"
    assert sqlite_file(settings.database_url) == Path("/srv/state/holdfast.db")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("sqlite:///jobs.db", "sqlite:///jobs.db"),
        ("sqlite:////srv/jobs.db", "sqlite:////srv/jobs.db"),
        ("postgresql://me:secret@db:5432/jobs", "postgresql://me:secret@db:5432/jobs"),
        ("postgres://me@db/jobs", "postgresql://me@db/jobs"),
        ("postgresql:///jobs?host=/run/pg", "postgresql:///jobs?host=/run/pg"),
    ],
)
def test_database_urls_that_are_accepted(given: str, read: str) -> None:
    settings = load_settings({"HOLDFAST_DATABASE_URL": given})
    assert settings.database_url == read


@pytest.mark.parametrize(
    "given",
    [
        "mysql://me:secret@db/jobs",
        "postgresql+asyncpg://me:secret@db/jobs",
        "postgresql://me:secret@db:port/jobs",
        "postgresql://",
        "postgresql:me:secret@db",
        "sqlite://jobs-secret.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///folder/",
        "sqlite:///jobs.db?mode=secret",
        "secret.db",
    ],
)
def test_other_databases_are_refused_without_showing_the_value(given: str) -> None:
    message = problems_of({"HOLDFAST_DATABASE_URL": given})
    assert message.startswith("HOLDFAST_DATABASE_URL must be sqlite:///FILE, ")
    assert "secret" not in message


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("postgresql://me:secret@db/jobs", "postgresql://me:***@db/jobs"),
        ("postgresql://me:se@cr/et@db/jobs", "postgresql://me:***@db/jobs"),
        ("postgresql://me@db/jobs", "postgresql://me@db/jobs"),
        ("postgresql:///jobs?password=secret&x=1", "postgresql:///jobs?password=***&x=1"),
        ("sqlite:////srv/jobs.db", "sqlite:////srv/jobs.db"),
    ],
)
def test_a_password_is_masked(url: str, masked: str) -> None:
    assert mask_password(url) == masked


def test_settings_print_without_the_password() -> None:
    settings = load_settings({"HOLDFAST_DATABASE_URL": "postgresql://me:secret@db/jobs"})
    assert "secret" not in f"{settings} {settings!r} {settings.masked_database_url}"


def test_milliseconds_are_read_as_seconds_and_shown_as_they_are_set() -> None:
    settings = load_settings({"WORKER_TARGET_SLICE_MS": "2500"})
    assert settings.claim.target_slice_seconds == 2.5
    named = {each.bare: each for each in SETTINGS}
    assert named["WORKER_TARGET_SLICE_MS"].written_in(settings) == "2500"
    assert named["DB_P50_MS"].shown == "`150`"
    assert settings.ingest.p50_seconds == 0.15
