"""The child process that opens what was fetched.

An error here ends this process and nothing else. It answers in JSON: its output is trusted no more
than its input."""

from __future__ import annotations

import math
import os
import pickle
import resource
import signal
import sys
from typing import Any

import orjson

from holdfast.errors import ItemError
from holdfast_regulations.reading import (
    FetchedPage,
    extract_form,
    read_frame,
    read_page,
    write_frame,
)
from holdfast_regulations.sources import Source

_MEMORY_BYTES = 2 * 1024**3


def main() -> None:
    # A host that shuts down sends it to all processes; this one ends when its parent has ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print is not an answer
    while (request := read_frame(sys.stdin.buffer)) is not None:
        page, source, seconds = pickle.loads(request)  # from our own parent
        _allow(seconds)
        write_frame(answers, orjson.dumps(_answer(page, source)))


def _allow(seconds: int) -> None:
    """Limits the processor time.

    The limit counts from the start of the process, in whole seconds."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _answer(page: FetchedPage, source: Source) -> dict[str, Any]:
    try:
        return extract_form(read_page(page, source))
    except ItemError as error:
        return {"code": error.code, "message": error.message}
    except (MemoryError, RecursionError) as error:
        return {"code": "PARSE_ERROR", "message": f"it cannot be read: {type(error).__name__}"}
    except Exception as error:  # of any library, about any page
        return {"code": "PARSE_ERROR", "message": f"{type(error).__name__}: {error}"[:300]}


if __name__ == "__main__":
    main()
