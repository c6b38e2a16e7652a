"""`python -m holdfast.settings` prints the reference page."""

from holdfast.settings.groups import installed_groups
from holdfast.settings.reference import reference

print(reference(installed_groups()), end="")
