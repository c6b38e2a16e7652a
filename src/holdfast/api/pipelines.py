"""The pipelines that this server knows."""

from __future__ import annotations

import inspect
from typing import Any, Literal, cast

from fastapi import APIRouter
from pydantic import Field

from holdfast.api.dependencies import Parts
from holdfast.api.identity import PartsOf, Someone
from holdfast.api.shapes import Shape
from holdfast.errors import UserError
from holdfast.options import Option
from holdfast.pipeline import Pipeline

router = APIRouter(prefix="/api/pipelines", tags=["pipelines"])


class OptionShape(Shape):
    name: str = Field(examples=["currency"])
    type: Literal["str", "int", "float", "bool"]
    default: Any = Field(description="Null: it may be left out.")
    help: str
    choices: list[Any]


class PipelineShape(Shape):
    name: str = Field(examples=["prices"])
    about: str | None
    columns: list[str]
    inputs: list[str] = Field(description="Fields that its rows should have.")
    options: list[OptionShape] = Field(
        description="What can be set about a job; none declared: anything can."
    )
    discovers: bool = Field(description="Whether it finds its records by itself.")


class PipelineList(Shape):
    pipelines: list[PipelineShape]


@router.get("", summary="List the pipelines")
async def index(person: Someone, parts: PartsOf) -> PipelineList:
    return PipelineList(pipelines=[_shape(each) for each in parts.pipelines.values()])


def pipeline_named(name: str, parts: Parts) -> Pipeline:
    if name not in parts.pipelines:
        known = ", ".join(sorted(parts.pipelines)) or "none; start the server with a PIPELINE.py"
        raise UserError(f"there is no pipeline {name!r}", f"Pipelines: {known}.")
    return parts.pipelines[name]


def _shape(pipeline: Pipeline) -> PipelineShape:
    return PipelineShape(
        name=pipeline.name,
        about=inspect.cleandoc(pipeline.__doc__) if pipeline.__doc__ else None,
        columns=list(pipeline.columns),
        inputs=list(pipeline.inputs),
        options=[_option_shape(each) for each in pipeline.options],
        discovers=pipeline.discovers,
    )


def _option_shape(option: Option) -> OptionShape:
    return OptionShape(
        name=option.name,
        type=cast(Any, option.type.__name__),
        default=option.default,
        help=option.help,
        choices=list(option.choices),
    )
