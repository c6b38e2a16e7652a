"""How long a transaction has been open: what keeps dead rows in PostgreSQL."""

import asyncpg

from holdfast.store import Store, open_store


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
