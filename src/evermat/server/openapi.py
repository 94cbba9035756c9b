"""The description of the interface in OpenAPI 3.1, generated from the endpoints."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from evermat import __version__
from evermat.server.access import Role
from evermat.server.formats import ARROW, JSON

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic import BaseModel

    from evermat.server.endpoints import Endpoint

_SCHEMAS = "#/components/schemas/"
_PROBLEM = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "text"],
            "properties": {
                "code": {"type": "string", "pattern": "^EM[0-9]{3}$"},
                "message": {"type": "string"},
                "text": {"type": "string", "description": "The whole error, as text."},
                "line": {"type": ["integer", "null"]},
                "column": {"type": ["integer", "null"]},
                "reason": {"type": ["string", "null"]},
                "help": {"type": ["string", "null"]},
                "problems": {"type": "array", "items": {"type": "object"}},
            },
        }
    },
}


def document_of(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Return the description of some endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {"Problem": _PROBLEM}
    for each in endpoints:
        methods = paths.setdefault(each.path, {})
        methods[each.method.lower()] = _operation(each, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Evermat",
            "version": __version__,
            "description": "Ask a knowledge base, change it, and follow its changes.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}_{endpoint.work.__name__}",
        "summary": endpoint.summary,
        "description": endpoint.description,
        "parameters": [*_in_path(endpoint.path), *_in_query(endpoint.params, schemas)],
        "responses": {
            "200": {"description": "The answer.", "content": _contents(endpoint)},
            "default": {
                "description": "What is wrong, where, and what to do about it.",
                "content": {JSON: {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
            },
        },
    }
    bodies: dict[str, Any] = {}
    if endpoint.body is not None:
        bodies[JSON] = {"schema": _schema(endpoint.body, schemas)}
    for media_type in endpoint.files:
        bodies[media_type] = {"schema": {"type": "string"}}
    if bodies:
        operation["requestBody"] = {"required": True, "content": bodies}
    if endpoint.role > Role.PUBLIC:
        operation["security"] = [{"token": []}, {}]
        operation["x-role"] = endpoint.role.name.lower()
    return operation


def _contents(endpoint: Endpoint) -> dict[str, Any]:
    contents: dict[str, Any] = {}
    for media_type in endpoint.offers:
        schema: dict[str, Any] = {"type": "string"}
        if media_type == JSON:
            schema = {"type": "object"}
        elif media_type == ARROW:
            schema = {"type": "string", "contentMediaType": ARROW}
        contents[media_type] = {"schema": schema}
    return contents


def _in_path(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0, "maximum": (1 << 53) - 1},
        }
        for name in re.findall(r"{(\w+)}", path)
    ]


def _in_query(params: type[BaseModel], schemas: dict[str, Any]) -> list[dict[str, Any]]:
    schema = _resolved(params, schemas)
    required = schema.get("required", [])
    return [
        {
            "name": name,
            "in": "query",
            "required": name in required,
            "description": about.pop("description", ""),
            "schema": _without_null(about),
        }
        for name, about in schema.get("properties", {}).items()
    ]


def _without_null(about: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an optional parameter, which is omitted rather than null."""
    options = about.pop("anyOf", None)
    if options is not None:
        (value,) = (each for each in options if each.get("type") != "null")
        about |= value
        about.pop("default", None)
    return about


def _schema(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a model, which is added to the others."""
    schemas[model.__name__] = _resolved(model, schemas)
    return {"$ref": f"{_SCHEMAS}{model.__name__}"}


def _resolved(model: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=f"{_SCHEMAS}{{model}}")
    schemas |= schema.pop("$defs", {})
    return schema
