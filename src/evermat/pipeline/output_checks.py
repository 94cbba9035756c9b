"""Outputs that cannot be meant, found before anything is read or committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.kb.queries import body_atoms
from evermat.lang.catalogue import UnknownPredicateError
from evermat.lang.parser import parse_query
from evermat.pipeline.config import output_place
from evermat.pipeline.feeds import last_version
from evermat.pipeline.knowledge import version_of
from evermat.pipeline.problems import plain_output_errors, require_feed_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.api import KnowledgeBase
    from evermat.pipeline.config import Config
    from evermat.pipeline.program import PipelineProgram


def check_outputs(
    config: Config, program: PipelineProgram, kb: KnowledgeBase | None
) -> None:
    """See that outputs speak of predicates that rules, sources or the state have.

    Raises:
        ParseError: a query is none.
        UnknownPredicateError: an output names a predicate that nobody knows.
    """
    known = set(_known(config, program))
    if kb is not None:
        known.update(kb.predicates)
    prefixes = dict(program.program.prefixes)
    for output in config.outputs:
        for name in output.predicates:
            if name not in known:
                raise UnknownPredicateError(name, known)
        if output.query is not None:
            for atom in body_atoms(parse_query(output.query, prefixes=prefixes)):
                if atom.predicate not in known:
                    span = atom.predicate_span or atom.span
                    raise UnknownPredicateError(atom.predicate, known, span=span)


def check_feeds(config: Config, kb: KnowledgeBase | None) -> None:
    """See that change feeds are those of the state, if there is to be one.

    Raises:
        OutputError: a feed is that of another state, or cannot be read.
    """
    if config.state is None:
        return
    version = 0 if kb is None else version_of(kb)
    for output in config.outputs:
        if output.mode != "changes" or output.format == "table":
            continue
        for name in output.predicates:
            place = output_place(output, name)
            with plain_output_errors(place, "the output"):
                last = last_version(place)
            require_feed_of(version, last or 0, place)


def _known(config: Config, program: PipelineProgram) -> Iterator[str]:
    for source in config.sources:
        yield from source.predicates
    yield from program.facts
    for declaration in program.program.declarations:
        yield declaration.predicate
    for rule in program.program.rules:
        for atom in (*rule.heads, *body_atoms(rule.body)):
            yield atom.predicate
