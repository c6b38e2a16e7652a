"""How long a transaction has been open: what keeps dead rows in PostgreSQL."""

import re
from pathlib import Path

import asyncpg
import psycopg

from holdfast.cli.doctor import of_oldest_transaction
from holdfast.kernel import Store, open_store
from tests.command import HoldfastCommand


async def test_no_open_transaction_has_no_age(store: Store) -> None:
    assert not await store.reads.oldest_transaction_seconds()


async def test_a_transaction_that_is_held_open_has_an_age(
    postgres_url: str,
) -> None:
    store = await open_store(postgres_url)
    holder = await asyncpg.connect(postgres_url)
    try:
        async with holder.transaction():
            await holder.execute("select 1")
            first = await store.reads.oldest_transaction_seconds()
            second = await store.reads.oldest_transaction_seconds()
        assert first is not None and second is not None and second > first >= 0
    finally:
        await holder.close()
        await store.close()


def test_doctor_names_the_age_of_the_oldest_transaction(postgres_url: str, tmp_path: Path) -> None:
    doctor = HoldfastCommand(postgres_url, tmp_path)
    with psycopg.connect(postgres_url) as holder:
        holder.execute("select 1")
        said = doctor.run("doctor").stdout
    assert re.search(r"ok +oldest transaction: open for \d+ m?s", said)


def test_doctor_says_what_to_do_about_a_transaction_that_is_open_for_long() -> None:
    assert of_oldest_transaction(None).ok
    assert of_oldest_transaction(599.0).ok
    old = of_oldest_transaction(1200.0)
    assert not old.ok and old.text == "open for 20 min"
    assert "pg_terminate_backend" in (old.fix or "")
