"""The part of the environment that child processes get if they open untrusted files."""

from __future__ import annotations

import os

#: Where Python and its modules are, and how names of files are encoded. The rest contains passwords
#: and keys.
_INHERITED = frozenset(
    {
        *("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONUTF8", "LD_LIBRARY_PATH"),
        *("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"),
    }
)


def child_environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name in _INHERITED}
    return {**inherited, **more}
