"""The numbers of new items."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from holdfast_client.errors import LeaseLost
from holdfast_client.transaction import Transaction


async def take_sequence(tx: Transaction, job_id: int, count: int) -> Sequence[int]:
    """Takes numbers for new items: a block, or whatever the sequence returns for a standing job on
    PostgreSQL, to which many processes add at once."""
    rows = await tx.take("take_sequence", {"job_id": job_id, "count": count})
    if not rows:
        raise LeaseLost(f"job {job_id} is gone")
    first, seqs = rows[0]
    return range(first, first + count) if seqs is None else seqs


def stretches(taken: Sequence[int], used: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields the first and last of the used numbers in each block without a gap: the items of
    others lie between two blocks."""
    if isinstance(taken, range):
        yield used[0], used[-1]
        return
    blocks = [seq for before, seq in pairwise(taken) if seq != before + 1]
    lo = hi = used[0]
    for seq in used[1:]:
        if bisect_right(blocks, seq) != bisect_right(blocks, hi):
            yield lo, hi
            lo = seq
        hi = seq
    yield lo, hi
