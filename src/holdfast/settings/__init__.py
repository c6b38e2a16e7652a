"""Every setting, and how settings are read.

`load_settings` reads them once, in the composition root; everything else is given values. An
extension declares its own as a dataclass of `setting(...)` fields.
"""

from holdfast.settings.core import SETTINGS, Settings
from holdfast.settings.declared import PREFIX, Setting, setting
from holdfast.settings.groups import Group, installed_groups
from holdfast.settings.loading import every_setting, load_settings

__all__ = [
    "PREFIX",
    "SETTINGS",
    "Group",
    "Setting",
    "Settings",
    "every_setting",
    "installed_groups",
    "load_settings",
    "setting",
]
