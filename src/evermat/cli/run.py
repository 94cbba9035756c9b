"""`evermat run` and `evermat query`: load a knowledge base and print its facts."""

from __future__ import annotations

import hashlib
import re
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.cli.changing import apply_updates, tell_version
from evermat.cli.contradictions import show_contradictions
from evermat.cli.jobs import load
from evermat.cli.output import Output
from evermat.errors.redaction import redacted
from evermat.errors.wording import counted
from evermat.io.databases import is_database
from evermat.io.files import data_file, require_place
from evermat.io.writing import require_writable
from evermat.kb.program_files import write_sinks
from evermat.kb.requests import RequestError
from evermat.results.result import Result, require_package
from evermat.runtime.input_limits import allowing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.api import KnowledgeBase
    from evermat.cli.jobs import Job, Loaded
    from evermat.cli.output import Cell


def run_job(job: Job, output: Output) -> None:
    """Materialise, apply the updates, write the outputs."""
    with allowing(job.places()):
        loaded = load(job, output)
        _show_predicates(loaded.kb, output)
        if job.updates:
            apply_updates(job, loaded, output)
        else:
            tell_version(loaded.kb, output)
        show_contradictions(loaded.kb, output)
        if job.is_profiled:
            _show_profile(loaded.kb, output)
    with allowing(job.allow_paths):
        _write(job, loaded, output)


def answer(
    job: Job, question: str, output: Output, *, limit: int | None, out: str | None
) -> None:
    """Materialise and answer one query."""
    _require_writable(out)
    with allowing(job.places()):
        kb = load(job, Output(is_json=True), question=question).kb
    _show_answer(kb.query(question), output, limit, out)


def answer_sparql(
    job: Job, text: str, output: Output, *, limit: int | None, out: str | None
) -> None:
    """Materialise and answer one query in SPARQL; updates are rejected."""
    _require_writable(out)
    require_package("rdflib", "sparql")
    from evermat.sparql import is_update

    if is_update(text):
        raise RequestError(
            "an update in SPARQL is no query",
            help="use `kb.sparql` in Python, or `evermat update` with files of facts",
        )
    with allowing(job.places()):
        kb = load(job, Output(is_json=True)).kb
    found = kb.sparql(text)
    if isinstance(found, Result):
        _show_answer(found, output, limit, out)
        return
    output.document["answer"] = found
    output.say("yes" if found else "no")


def _require_writable(out: str | None) -> None:
    """Check early that answers can be written to their place."""
    if out is not None and not is_database(out):
        require_place(Path(out))
        require_writable(data_file(out))


def _show_answer(
    result: Result, output: Output, limit: int | None, out: str | None
) -> None:
    if out is not None:
        written = result.first(limit)
        written.write(out, terms=output.has_terms)
        output.document.update(file=redacted(out), count=len(written))
        output.say(f"wrote {counted(len(written), 'row')} to {redacted(out)}")
        return
    output.result(result, limit)


def list_algorithms(output: Output) -> None:
    """Print a table of the algorithms."""
    from evermat.maintenance.algorithms import DESCRIPTIONS

    rows = [asdict(each) for each in DESCRIPTIONS]
    output.document["algorithms"] = rows
    columns = ["name", "what it is", "best when", "extra memory", "paper"]
    output.table(columns, [list(row.values()) for row in rows])


# ----------------------------------------------------------------------- parts of run


def _show_profile(kb: KnowledgeBase, output: Output) -> None:
    """Print the cost of each rule, the slowest first."""
    found = kb.profile()
    output.heading("profile: each rule applied once to all facts")
    output.table(found.COLUMNS, found.rows())
    output.document["profile"] = [
        asdict(each) | {"duplicates": each.duplicates} for each in found.rules
    ]


def _show_predicates(kb: KnowledgeBase, output: Output) -> None:
    stats = kb.stats()
    output.document["predicates"] = stats["predicates"]
    rows: list[list[Cell]] = [
        [name, size["facts"], size["explicit"]]
        for name, size in stats["predicates"].items()
    ]
    output.table(["predicate", "facts", "explicit"], rows)


def _write(job: Job, loaded: Loaded, output: Output) -> None:
    """Write the exports of the program, or else all derived predicates."""
    kb, program = loaded.kb, loaded.program
    if job.database is not None:
        _write_tables(job.database, loaded, output)
        return
    if job.out is None:
        # Without a folder, only exports to standard output are written.
        printed = tuple(sink for sink in program.sinks if sink.path == "-")
        unwritten = len(program.sinks) - len(printed)
        if unwritten:
            waiting = f"{counted(unwritten, 'file')} to export"
            output.say(f"not written: {waiting} (give --out DIR)")
        program = replace(program, sinks=printed)
    stream = sys.stderr if output.is_json else sys.stdout
    folder = job.out or Path()
    files = write_sinks(
        program, lambda name: kb.facts(name).to_terms(), folder, stream=stream
    )
    if job.out is None:
        return
    if not program.sinks:
        for name, file in file_names(_derived(kb)).items():
            path = _output_file(job, file)
            kb.facts(name).write(path)
            files.append(path)
    output.document["files"] = [str(path) for path in files]
    output.say(f"wrote {counted(len(files), 'file')} to {job.out}")


def _write_tables(address: str, loaded: Loaded, output: Output) -> None:
    """Write what the program exports, or all that it derives, to a database."""
    kb, exported = loaded.kb, [sink.predicate for sink in loaded.program.sinks]
    names = list(dict.fromkeys(exported)) or _derived(kb)
    for name in names:
        kb.facts(name).write(address)
    output.document["tables"] = names
    output.say(f"wrote {counted(len(names), 'table')} to {redacted(address)}")


def _derived(kb: KnowledgeBase) -> list[str]:
    return sorted({rule.head.predicate for rule in kb.rules} & set(kb))


def _output_file(job: Job, name: str) -> Path:
    return (job.out or Path()) / f"{name}.{job.form.lstrip('.')}"


_LONGEST_NAME = 200
"""Bytes of a file's name; suffixes follow, and the usual limit is 255."""


def file_names(predicates: Iterable[str]) -> dict[str, str]:
    """Return a distinct file name for each predicate, which may be an IRI.

    >>> file_names(["reach", "u:a/b", "u:a#b"])
    {'reach': 'reach', 'u:a/b': 'u_a_b', 'u:a#b': 'u_a_b_2'}
    """
    names: dict[str, str] = {}
    for predicate in predicates:
        plain = re.sub(r"[^\w.\-]+", "_", predicate).strip("_") or "facts"
        if plain.startswith(".") or len(plain.encode()) > _LONGEST_NAME:
            digest = hashlib.blake2s(predicate.encode(), digest_size=8).hexdigest()
            plain = f"{plain.lstrip('.')[:40]}_{digest}"
        # Some file systems are case-insensitive.
        taken, number = {each.casefold() for each in names.values()}, 2
        name = plain
        while name.casefold() in taken:
            name, number = f"{plain}_{number}", number + 1
        names[predicate] = name
    return names
