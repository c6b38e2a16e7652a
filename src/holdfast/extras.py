"""Optional parts: what can be installed beside the core, and what to do when it is missing."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.errors import SettingsError

#: extra -> the module that it installs
EXTRAS = {
    "rabbitmq": "aio_pika",
    "s3": "obstore",
    "otel": "opentelemetry.sdk",
}


def is_installed(extra: str) -> bool:
    try:
        return find_spec(EXTRAS[extra]) is not None
    except ModuleNotFoundError:  # of a parent package
        return False


def require(extra: str, wanted_by: str) -> None:
    """Raises an error that names what to install, for a setting that needs an optional part."""
    if not is_installed(extra):
        raise SettingsError(
            f"{wanted_by} needs a part of Holdfast that is not installed",
            f"Run: pip install 'holdfast[{extra}]'",
        )
