"""The pipelines that this server offers."""

from __future__ import annotations

import inspect
from typing import Any, Literal, cast

from fastapi import APIRouter
from pydantic import Field

from holdfast.options import Option
from holdfast.pipeline import Pipeline
from holdfast.server.identity import PartsOf, Someone
from holdfast.server.shapes import Shape

router = APIRouter(prefix="/api/pipelines", tags=["pipelines"])


class OptionShape(Shape):
    name: str = Field(examples=["currency"])
    type: Literal["str", "int", "float", "bool"]
    default: Any
    required: bool
    help: str
    choices: list[Any]


class PipelineShape(Shape):
    name: str = Field(examples=["prices"])
    about: str | None
    columns: list[str]
    inputs: list[str] = Field(description="Fields that input rows should have.")
    options: list[OptionShape] = Field(
        description="Options of a job; a pipeline that declares none accepts any."
    )
    discovers: bool = Field(description="Whether it finds its own records.")
    plans: bool = Field(
        description="Whether it plans its own jobs; `POST /api/jobs` cannot start one of these."
    )


class PipelineList(Shape):
    pipelines: list[PipelineShape]


@router.get("", summary="List the pipelines")
async def index(person: Someone, parts: PartsOf) -> PipelineList:
    return PipelineList(pipelines=[_shape(pipeline) for pipeline in parts.pipelines.values()])


def _shape(pipeline: Pipeline) -> PipelineShape:
    return PipelineShape(
        name=pipeline.name,
        about=inspect.cleandoc(pipeline.__doc__) if pipeline.__doc__ else None,
        columns=list(pipeline.columns),
        inputs=list(pipeline.inputs),
        options=[_option_shape(option) for option in pipeline.options],
        discovers=pipeline.discovers,
        plans=pipeline.plans,
    )


def _option_shape(option: Option) -> OptionShape:
    return OptionShape(
        name=option.name,
        type=cast(Any, option.type.__name__),
        default=option.default,
        required=option.required,
        help=option.help,
        choices=list(option.choices),
    )
