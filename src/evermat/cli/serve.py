"""`evermat serve`: a knowledge base over HTTP, with a console."""

from __future__ import annotations

import errno
import logging
import socket
from typing import TYPE_CHECKING

from evermat.cli.jobs import load
from evermat.results.result import require_package
from evermat.runtime.input_limits import allowing
from evermat.server.access import access_for
from evermat.server.app import application
from evermat.server.errors import ServerSetupError
from evermat.server.service import Service

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.cli.jobs import Job
    from evermat.cli.output import Output
    from evermat.server.limits import Limits


def serve(
    job: Job,
    output: Output,
    *,
    address: tuple[str, int],
    names: frozenset[str],
    tokens: Path | None,
    limits: Limits,
) -> None:
    """Load a knowledge base and serve it until a signal arrives.

    Args:
        job: the program and facts to load.
        output: receives progress.
        address: the host and port to listen on; port 0 takes a free one.
        names: other names of the server.
        tokens: a file of tokens.
        limits: limits of requests.

    Raises:
        ServerSetupError: it cannot be served with these settings.
    """
    uvicorn = require_package("uvicorn", "server")
    access = access_for(address[0], names, tokens)
    listener = _listener(*address)
    if job.engine == "spark":
        raise ServerSetupError(
            "the engine `spark` cannot be served",
            help="serve its state with the engine `embedded`",
        )
    with allowing(job.places()):
        kb = load(job, output).kb
    name = (job.store or str(job.rules)).rstrip("/").rpartition("/")[2]
    service = Service(kb, name=name, limits=limits)
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    output.say(f"serving {name} on http://{shown}:{port}/ (Ctrl-C stops)")
    logging.getLogger("evermat").addHandler(logging.StreamHandler())
    config = uvicorn.Config(
        application(service, access),
        log_level="warning",
        timeout_graceful_shutdown=5,
        server_header=False,
        h11_max_incomplete_event_size=1 << 16,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    """Open a listening socket, before anything is loaded."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=512)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ServerSetupError(
                f"port {port} of `{host}` is in use",
                help="stop what uses it, or choose another with --port; 0 takes one "
                "that is free",
            ) from error
        reason = (error.strerror or str(error)).lower()
        raise ServerSetupError(
            f"cannot listen on `{host}`, port {port}: {reason}"
        ) from error
