"""Places for long work: the work of one owner does not block another's."""

from __future__ import annotations

from holdfast.engine.fair_places import FairPlaces


def test_two_of_one_owner_do_not_keep_another_out() -> None:
    places = FairPlaces(2)
    mine = [(1, "ada"), (2, "ada"), (3, "ada")]
    assert places.choose(mine, 0) == [1, 2], "alone, an owner has all places"
    waiting = [(3, "ada"), (4, "ben")]
    assert places.choose(waiting, 1) == []
    assert places.to_yield(waiting, 1) in (1, 2)
    places.end(1, 2)
    assert places.choose([(1, "ada"), *waiting], 2) == [4]
    assert places.to_yield([(1, "ada")], 100) is None, "each owner has one"


def test_place_goes_round_when_there_are_more_owners_than_places() -> None:
    places = FairPlaces(1)
    assert places.choose([(1, "ada")], 0) == [1]
    waiting = [(2, "ben")]
    assert places.to_yield(waiting, 5) is None, "it has its turn"
    assert places.to_yield(waiting, 10) == 1
    places.end(1, 10)
    assert places.choose([(1, "ada"), (2, "ben")], 10) == [2]


def test_failing_work_waits_longer_each_time_and_holds_no_place() -> None:
    places = FairPlaces(1)
    begun = []
    for tenth in range(100):
        now = tenth / 10
        for work in places.choose([(1, "ada")], now):
            begun.append(now)
            places.end(work, now, failed=True)
    assert begun == [0.0, 1.0, 3.0, 7.0]
    assert places.failures(1) == 4
    assert places.choose([(1, "ada"), (2, "ben")], 9.9) == [2]
