"""What people and their programs need: accounts, files, exports, bulk operations, lists."""

from holdfast.features.console import Console, open_console

__all__ = ["Console", "open_console"]
