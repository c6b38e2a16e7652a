"""`python -m bench.meetings.download URL`: the bare loop that everything is compared with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import orjson

QUERY = {
    "_shape": "objects",
    "_size": "1000",
    "_sort": "id",
    "_nocount": "1",
    "_nofacet": "1",
    "_nosuggest": "1",
}


def pages(url: str) -> Iterator[list[dict[str, Any]]]:
    """Yields every row of the site's minutes, page by page, over one connection."""
    with httpx2.Client(timeout=60) as client:
        token: str | None = None
        while True:
            params = QUERY if token is None else {**QUERY, "_next": token}
            reply = client.get(f"{url}/meetings/minutes.json", params=params)
            reply.raise_for_status()
            body = orjson.loads(reply.content)
            yield body["rows"]
            token = body["next"]
            if token is None:
                return


if __name__ == "__main__":
    print(sum(len(rows) for rows in pages(sys.argv[1])))
