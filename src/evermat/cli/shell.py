"""`evermat shell`: an interactive session on files or a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.cli.jobs import load
from evermat.runtime.input_limits import allowing
from evermat.shell.session import Session
from evermat.shell.terminal import run

if TYPE_CHECKING:
    from evermat.cli.jobs import Job
    from evermat.cli.output import Output


def start(job: Job, output: Output) -> None:
    """Load a knowledge base, or create an empty one, and read lines."""
    if job.rules is None and job.store is None:
        kb = KnowledgeBase(engine=job.engine)
    else:
        with allowing(job.places()):
            kb = load(job, output).kb
    run(Session(kb))
