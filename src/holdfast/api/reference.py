"""Prints the reference page of the API from its routes: python -m holdfast.api.reference"""

from __future__ import annotations

from fastapi.routing import APIRoute

from holdfast.api.app import ROUTERS

_HEAD = """# HTTP API

Served by `holdfast api`. The whole description, with the form of every body and answer, is the
OpenAPI document at `/api/openapi.json`, for anybody who is logged in.
[Use the API](../how-to/use-the-api.md) shows the way.

Names in JSON are in camel case, times are ISO 8601 in UTC, errors are `application/problem+json`.
Lists answer `next`, to be given as `after`; it is null at the end. Any POST but those of people
and their tokens takes an `Idempotency-Key`.
"""


def reference() -> str:
    lines = [_HEAD]
    heading = ""
    for each in ROUTERS:
        for route in each.router.routes:
            if not isinstance(route, APIRoute) or not route.include_in_schema:
                continue
            if str(route.tags[0]) != heading:
                heading = str(route.tags[0])
                lines += ["", f"## {heading.capitalize()}", "", "| Route | |", "|---|---|"]
            method = min(route.methods or {"GET"})
            about = " ".join((route.description or "").split())
            told = f"{route.summary}. {about}".strip()
            lines.append(f"| `{method} {route.path}` | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(reference(), end="")
