"""The interface is what its description says: Schemathesis tries to show otherwise."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evermat.server import protocol
from evermat.server.access import access_for
from evermat.server.app import ALL, application
from evermat.server.formats import SUFFIXES
from evermat.server.limits import Limits
from evermat.server.service import Service
from served import paths

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer(*SUFFIXES, protocol.QUERY, protocol.UPDATE)
def as_text(_: object, value: object) -> bytes:
    return str(value).encode("utf-8", "replace")


def served() -> Any:
    access = access_for("127.0.0.1", frozenset(), None)
    service = Service(paths(), limits=Limits(seconds=5))
    app = application(service, access)
    return schemathesis.openapi.from_asgi("/openapi.json", app)


schema = served()


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(
    max_examples=24,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    deadline=None,
)
def test_answers_are_as_described(case: Any) -> None:
    if case.path == "/api/changes":
        pytest.skip("a stream has no end")
    case.call_and_validate(checks=CHECKS)


def test_every_endpoint_is_described() -> None:
    described = schema.raw_schema["paths"]
    assert {(each.path, each.method.lower()) for each in ALL} == {
        (path, method) for path, methods in described.items() for method in methods
    }
