from pathlib import Path

from fastapi import FastAPI

from holdfast.pipelines.meetings.web import PACK

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "read-meetings.md"


def test_every_route_of_meetings_is_documented() -> None:
    app = FastAPI()
    assert PACK.api is not None
    app.include_router(PACK.api)
    text = PAGE.read_text()
    routes = [
        f"`{method.upper()} {path}`"
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    ]
    assert len(routes) > 10
    assert [route for route in routes if route not in text] == []
