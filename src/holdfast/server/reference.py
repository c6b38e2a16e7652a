"""Prints the reference page of the API from its routes: python -m holdfast.server.reference"""

from __future__ import annotations

from fastapi.routing import APIRoute

from holdfast.server.api_app import ROUTERS

_HEAD = """# HTTP API

Served by `holdfast api`. The complete description, with the schema of every request and
response, is the OpenAPI document at `/api/openapi.json`, for every logged-in user.
[Use the API](../how-to/use-the-api.md) is an introduction.

JSON names are in camel case, times are ISO 8601 in UTC, errors are `application/problem+json`.
Lists return `next`, to be sent as `after`; it is null on the last page. Every POST accepts an
`Idempotency-Key`, except those for accounts and tokens.
"""


def reference() -> str:
    lines = [_HEAD]
    heading = ""
    for module in ROUTERS:
        for route in module.router.routes:
            if not isinstance(route, APIRoute) or not route.include_in_schema:
                continue
            if str(route.tags[0]) != heading:
                heading = str(route.tags[0])
                lines += ["", f"## {heading.capitalize()}", "", "| Route | |", "|---|---|"]
            method = min(route.methods or {"GET"})
            about = " ".join((route.description or "").split())
            text = f"{route.summary}. {about}".strip()
            lines.append(f"| `{method} {route.path_format}` | {text} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
