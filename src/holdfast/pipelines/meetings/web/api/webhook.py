"""The webhook by which a site reports a change.

PUT or POST /munis/api/update/<subdomain>/, with `Authorization: Bearer <secret>` or the bare
secret. If no secret is set, every request is refused.
"""

from __future__ import annotations

import hmac

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from holdfast.api.identity import PartsOf
from holdfast.errors import UserError
from holdfast.model import Json
from holdfast.pipelines.meetings.municipalities import FIELDS
from holdfast.pipelines.meetings.web.api.shapes import pipeline_of

router = APIRouter(prefix="/munis/api", tags=["meetings"])

#: What a site may report about itself. Its address is for the operator to decide.
_ACCEPTED = tuple(name for name in FIELDS if name not in ("url", "zone", "subdomain"))


@router.put("/update/{subdomain}/", summary="Report a change of a site")
@router.post("/update/{subdomain}/", summary="Report a change of a site")
async def update(subdomain: str, request: Request, parts: PartsOf) -> JSONResponse:
    pipeline = pipeline_of(parts)
    if not is_authorized(request.headers.get("authorization", ""), pipeline.webhook_secret):
        return _error(401, "Invalid webhook secret")
    fields = _fields(await request.body())
    if isinstance(fields, str):
        return _error(400, fields)
    control = parts.control(parts.options.owner)
    try:
        planned = await control.request(
            pipeline, {"webhook": {**fields, "subdomain": subdomain}}, "webhook"
        )
    except UserError as error:
        return _error(400, error.message)
    status = 201 if planned.answer["action"] == "created" else 200
    return JSONResponse({"status": "success", "subdomain": subdomain, **planned.answer}, status)


def is_authorized(header: str, secret: str) -> bool:
    """Compares in constant time."""
    if not secret:
        return False
    kind, _, rest = header.partition(" ")
    given = rest.strip() if kind.lower() == "bearer" else header.strip()
    return hmac.compare_digest(given.encode(), secret.encode())


def _fields(body: bytes) -> Json | str:
    """The fields of the body, or what is wrong with it."""
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return "Invalid JSON"
    if not isinstance(fields, dict):
        return "Invalid JSON"
    if not isinstance(fields.get("name"), str) or not fields["name"].strip():
        return "name field is required"
    return {name: fields[name] for name in _ACCEPTED if name in fields}


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status)
