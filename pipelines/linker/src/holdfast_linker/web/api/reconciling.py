"""The Reconciliation server, version 0.2: what OpenRefine and others ask a project.

Its address includes a token; there is no other way in, and nothing can be changed. Pages of other
sites may read its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.routing import APIRoute

from holdfast.errors import NotAllowed, NotThere, UserError
from holdfast.server.identity import PartsOf
from holdfast.server.problems import answer as problem
from holdfast_linker import answering, extending
from holdfast_linker.answering import BadQueries, Term
from holdfast_linker.knowing import PROPERTIES, TYPES, ProjectRepository
from holdfast_linker.options import WIKIDATA
from holdfast_linker.projects import Project
from holdfast_linker.scoring import Thresholds
from holdfast_linker.web.api.shapes import pipeline_of
from holdfast_linker.web.api.tokens import hash_of

_LEAST_EXTENSION = 200  # ids per request; OpenRefine sends its rows ten at a time, others a page
_PREVIEW_POLICY = "default-src 'none'; frame-ancestors *"
_STATUSES: tuple[tuple[type[UserError], int], ...] = ((NotAllowed, 401), (NotThere, 404))
_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class _OpenRoute(APIRoute):
    """A route with answers and refusals that pages of other sites may read."""

    def get_route_handler(self) -> _Handler:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                response = await handler(request)
            except UserError as error:
                response = problem(_status_of(error), error.message, error.hint)
            except RequestValidationError:
                response = problem(400, "the request does not follow the protocol")
            for name, value in answering.cross_origin_headers().items():
                response.headers[name] = value
            return response

        return handle


def _status_of(error: UserError) -> int:
    if isinstance(error, BadQueries):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 422)


router = APIRouter(prefix="/reconcile/{token}", tags=["linker"], route_class=_OpenRoute)

Token = Annotated[str, Path(max_length=200)]
Queries = Annotated[str | None, Query(max_length=2_000_000)]
PostedQueries = Annotated[str | None, Form(max_length=2_000_000)]
EntityId = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
Prefix = Annotated[str, Query(max_length=1000)]
Kind = Literal["entity", "type", "property"]


async def token_project(token: Token, parts: PartsOf) -> Project:
    rows = await parts.fetch("linker_project_of_token", {"hash": hash_of(token)})
    if not rows:
        raise NotAllowed(
            "the token is unknown, has expired or was revoked", "Ask the owner for another address."
        )
    return Project.of(rows[0])


TokenProject = Annotated[Project, Depends(token_project)]


@router.get("", summary="Describe the service, or answer queries")
async def ask(
    project: TokenProject,
    token: Token,
    request: Request,
    parts: PartsOf,
    queries: Queries = None,
    extend: Queries = None,
) -> JSONResponse:
    if extend is not None:
        return await _extend(project, extend, parts)
    if queries is None:
        return JSONResponse(_manifest(project, token, request))
    return await _answer(project, queries, parts)


@router.post("", summary="Answer queries, or extend data")
async def ask_by_form(
    project: TokenProject,
    token: Token,
    request: Request,
    parts: PartsOf,
    queries: PostedQueries = None,
    extend: PostedQueries = None,
) -> JSONResponse:
    return await ask(project, token, request, parts, queries, extend)


async def _answer(project: Project, queries: str, parts: PartsOf) -> JSONResponse:
    read = answering.read_queries(queries, pipeline_of(parts).settings.reconcile_batch)
    thresholds = Thresholds(auto_accept=project.rules.auto_accept, lead=project.rules.lead)
    repository = ProjectRepository(parts.fetch, project)
    return JSONResponse(await answering.answer(read, repository, thresholds))


async def _extend(project: Project, text: str, parts: PartsOf) -> JSONResponse:
    most = max(_LEAST_EXTENSION, pipeline_of(parts).settings.reconcile_batch)
    wanted = extending.read_extension(text, most)
    repository = ProjectRepository(parts.fetch, project)
    return JSONResponse(await extending.extend(wanted, repository, PROPERTIES))


@router.get("/properties", summary="Propose properties for data extension")
async def properties(
    project: TokenProject,
    parts: PartsOf,
    type: EntityId = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 30,
) -> JSONResponse:
    repository = ProjectRepository(parts.fetch, project)
    return JSONResponse(await extending.propose_properties(type, limit, repository))


def _manifest(project: Project, token: str, request: Request) -> dict[str, Any]:
    base = f"{str(request.base_url).rstrip('/')}/reconcile/{token}"
    name, provider = f"{project.name} (Holdfast)", project.rules.provider
    if provider != WIKIDATA:  # another provider's ids and types are its own
        view = f"{base}/preview?id={{{{id}}}}"
        return answering.manifest(name, base, view, [], (provider, provider))
    types = [Term(type_id, name) for type_id, name in TYPES.items()]
    return answering.manifest(name, base, "https://www.wikidata.org/wiki/{{id}}", types)


@router.get("/suggest/{kind}", summary="Suggest entities, types or properties")
async def suggest(
    project: TokenProject, kind: Kind, parts: PartsOf, prefix: Prefix = ""
) -> JSONResponse:
    repository = ProjectRepository(parts.fetch, project)
    suggesters = {
        "entity": answering.suggest_entities,
        "type": answering.suggest_types,
        "property": answering.suggest_properties,
    }
    return JSONResponse(await suggesters[kind](prefix, repository))


@router.get("/flyout/{kind}", summary="Explain a suggestion")
async def flyout(
    project: TokenProject, kind: Kind, parts: PartsOf, id: EntityId = ""
) -> JSONResponse:
    if kind != "entity":
        names = TYPES if kind == "type" else PROPERTIES
        if id not in names:
            raise NotThere(f"{id!r} is not known here")
        return JSONResponse({"id": id, "html": f"<p>{names[id]}</p>"})
    shown = await answering.flyout(id, ProjectRepository(parts.fetch, project))
    if shown is None:
        raise NotThere(f"{id!r} is not known here")
    return JSONResponse(shown)


@router.get("/preview", summary="Show an entity in a small page", response_class=HTMLResponse)
async def preview(project: TokenProject, parts: PartsOf, id: EntityId = "") -> HTMLResponse:
    page = await answering.preview(id, ProjectRepository(parts.fetch, project))
    if page is None:
        raise NotThere(f"{id!r} is not known here")
    return HTMLResponse(page, headers={"Content-Security-Policy": _PREVIEW_POLICY})
