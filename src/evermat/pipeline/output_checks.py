"""Outputs that cannot be meant, found before anything is read or committed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evermat.catalogue import UnknownPredicateError
from evermat.lang.parser import parse_query
from evermat.questions import body_atoms

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


def _known(config: Config, program: PipelineProgram) -> Iterator[str]:
    for source in config.sources:
        yield from source.predicates
    yield from program.facts
    for declaration in program.program.declarations:
        yield declaration.predicate
    for rule in program.program.rules:
        for atom in (*rule.heads, *body_atoms(rule.body)):
            yield atom.predicate
