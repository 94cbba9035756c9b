"""The program of a pipeline: rule files, ontologies and rules in the configuration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evermat.kb.fact_tables import fact_tables
from evermat.kb.rule_inputs import read_rules
from evermat.lang.catalogue import Catalogue
from evermat.lang.checks import require_valid
from evermat.lang.syntax import Program
from evermat.rdf.ontology import read_ontology
from evermat.runtime.allowed_paths import allowing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from evermat.kb.rule_inputs import RuleInput
    from evermat.pipeline.config import Config


@dataclass(frozen=True, slots=True)
class PipelineProgram:
    """Rules, and the facts that stand among them.

    Attributes:
        program: without facts.
        facts: what the program gives itself, by predicate.
        ignored: axioms of ontologies that are not rules here, with how many there are.
    """

    program: Program
    facts: Mapping[str, pa.Table]
    ignored: Mapping[str, int]


def read_pipeline_program(config: Config) -> PipelineProgram:
    """Read all rules of a pipeline.

    Raises:
        EvermatError: a file cannot be read, or is not a program.
    """
    texts: list[RuleInput] = [*config.rules]
    if config.text:
        texts.append(config.text)
    with allowing([config.file.parent, *config.allow_paths]):
        read = read_rules(texts)
    program = read.program
    ignored: dict[str, int] = {}
    for path in config.ontologies:
        ontology = read_ontology(path)
        program = program + Program(rules=ontology.rules)
        for name, count in ontology.ignored.items():
            ignored[name] = ignored.get(name, 0) + count
    require_valid(program)
    # A rule without a body is a fact, however it was written.
    bodiless = [rule for rule in program.rules if not rule.body]
    heads = [head for rule in bodiless for head in rule.heads]
    declared = Catalogue().extended(program.declarations)
    facts = fact_tables(
        {name: list(tables) for name, tables in read.tables.items()},
        [*program.facts, *heads],
        declared,
    )
    rules = tuple(rule for rule in program.rules if rule.body)
    return PipelineProgram(
        replace(program, rules=rules, facts=(), sources=()), facts, ignored
    )
