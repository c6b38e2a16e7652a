"""Prints the reference page of the API from its routes: python -m holdfast.server.reference"""

from __future__ import annotations

from collections import defaultdict

from fastapi.routing import APIRoute

from holdfast.server.api_app import api_routers

_HEAD = """# HTTP API

Served by `holdfast api`. The complete description, with the schema of every request and
response, is the OpenAPI document at `/api/openapi.json`, for every logged-in user.
[Use the API](../how-to/use-the-api.md) is an introduction.

JSON names are in camel case, times are ISO 8601 in UTC, errors are `application/problem+json`.
Lists return `next`, to be sent as `after`; it is null on the last page. Every POST accepts an
`Idempotency-Key`, except those for accounts and tokens.
"""


def reference() -> str:
    sections = defaultdict[str, list[str]](list)
    for router in api_routers():
        for route in router.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                sections[str(route.tags[0])].append(_line(route))
    lines = [_HEAD]
    for heading, rows in sections.items():
        lines += ["", f"## {heading.capitalize()}", "", "| Route | |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def _line(route: APIRoute) -> str:
    method = min(route.methods or {"GET"})
    about = " ".join((route.description or "").split())
    text = f"{route.summary}. {about}".strip()
    return f"| `{method} {route.path_format}` | {text} |"


if __name__ == "__main__":
    print(reference(), end="")
