"""The store under the console is as sound as in its own tests."""

from tests.store.conftest import store

__all__ = ["store"]
