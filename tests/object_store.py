"""A store of objects that speaks the protocol of S3, for tests, on this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCESS = {
    "AWS_ACCESS_KEY_ID": "name",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
    "AWS_EC2_METADATA_DISABLED": "true",
}
SECONDS = 600
"""How long the store may take to answer for the first time."""


@pytest.fixture(scope="session")
def store() -> Iterator[str]:
    """The address of a store in a process of its own, which lives as long as tests."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.fixture
def bucket(store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A new bucket; the environment says how to reach it, as that of users does."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {**ACCESS, "AWS_ENDPOINT_URL": store}.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=store)
    name = f"lake-{uuid.uuid4().hex}"
    end = time.monotonic() + SECONDS
    while True:
        try:
            client.create_bucket(Bucket=name)
        except EndpointConnectionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
        else:
            return f"s3://{name}"
