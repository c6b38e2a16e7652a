"""Declares and reads settings: each once, on the frozen dataclass of the part that uses it.

`holdfast.configuration` assembles those of the core. An extension also declares its own as a
dataclass of `setting(...)` fields.
"""

from holdfast.settings.declared import PREFIX, Setting, setting
from holdfast.settings.groups import Group, installed_groups

__all__ = ["PREFIX", "Group", "Setting", "installed_groups", "setting"]
