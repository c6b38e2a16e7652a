"""Receives the reports of sites about changes.

PUT or POST /munis/api/update/<subdomain>/, with `Authorization: Bearer <secret>` or the bare
secret; or signed with it: `X-Holdfast-Signature: t=SECONDS,n=NONCE,v1=HEX`, see
`holdfast.features.accounts.signatures`. If no secret is set, every request is refused.
"""

from __future__ import annotations

import hmac

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from holdfast.errors import SwitchedOff, Throttled, UserError
from holdfast.features.accounts.signatures import HEADER, wrong_signature
from holdfast.model import Json
from holdfast.server.dependencies import Parts
from holdfast.server.identity import PartsOf
from holdfast_meetings.municipalities import FIELDS
from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.web.api.shapes import pipeline_of

router = APIRouter(prefix="/munis/api", tags=["meetings"])

#: What a site may report about itself. Its address is for the operator to decide.
_ACCEPTED = tuple(name for name in FIELDS if name not in ("url", "zone", "subdomain"))


@router.put("/update/{subdomain}/", summary="Report a change of a site")
@router.post("/update/{subdomain}/", summary="Report a change of a site")
async def update(subdomain: str, request: Request, parts: PartsOf) -> JSONResponse:
    pipeline = pipeline_of(parts)
    refusal = await _refusal(request, parts, pipeline)
    if refusal is not None:
        return _error(401, refusal)
    fields = _fields(await request.body())
    if isinstance(fields, str):
        return _error(400, fields)
    control = parts.control(parts.options.owner)
    try:
        planned = await control.request(
            pipeline, {"webhook": {**fields, "subdomain": subdomain}}, "webhook"
        )
    except (SwitchedOff, Throttled) as error:
        return _error(503, error.message)  # nothing was stored: the site has to send it again
    except UserError as error:
        return _error(400, error.message)
    status = 201 if planned.answer["action"] == "created" else 200
    return JSONResponse({"status": "success", "subdomain": subdomain, **planned.answer}, status)


async def _refusal(request: Request, parts: Parts, pipeline: Meetings) -> str | None:
    """Returns why the request is refused, or None. A signature that is sent must be valid."""
    header = request.headers.get(HEADER)
    if header is None:
        if pipeline.webhook_signed:
            return "The webhook is not signed"
        given = request.headers.get("authorization", "")
        return None if is_authorized(given, pipeline.webhook_secret) else "Invalid webhook secret"
    if not pipeline.webhook_secret:
        return "Invalid webhook secret"
    path, body = request.url.path, await request.body()
    nonces, now = parts.console.nonces, parts.clock.now()
    return await wrong_signature(
        nonces, "webhook", pipeline.webhook_secret, path, body, header, now
    )


def is_authorized(header: str, secret: str) -> bool:
    """Whether the header contains the secret; compares in constant time."""
    if not secret:
        return False
    kind, _, rest = header.partition(" ")
    given = rest.strip() if kind.lower() == "bearer" else header.strip()
    return hmac.compare_digest(given.encode(), secret.encode())


def _fields(body: bytes) -> Json | str:
    """Returns the fields of the body, or what is wrong with it."""
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
