"""How a knowledge base treats equality: not at all, by axioms, or by rewriting.

| mode      | meaning                                                                |
| --------- | ---------------------------------------------------------------------- |
| `off`     | `same_as` and `owl:sameAs` are predicates like others                  |
| `axioms`  | rules are added that make equality a congruence; the baseline          |
| `rewrite` | one constant stands for all that are equal to it                       |
| `auto`    | `rewrite` as soon as a rule or a fact is about equality, before `off`  |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra.abilities import can_rewrite
from evermat.columns import as_terms
from evermat.errors import EvermatError
from evermat.lang.catalogue import ArityClashError
from evermat.lang.equality import OWL_SAME_AS, axioms, mentions_equality
from evermat.lang.normalise import rule_key
from evermat.lang.syntax import SAME_AS, TRIPLE, Declaration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evermat.algebra import Engine
    from evermat.algebra.abilities import EqualityEngine, StagedRows
    from evermat.kb.requests import CheckedRequest
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule

Equality = Literal["off", "axioms", "rewrite", "auto"]


class UnknownEqualityError(EvermatError, ValueError):
    """A way to treat equality that there is not."""

    code: ClassVar[str] = "EM560"


def check_equality(mode: object) -> None:
    """Refuse a mode that there is not."""
    if mode not in get_args(Equality):
        raise UnknownEqualityError(
            f"there is no way to treat equality called {mode!r}",
            help='use "off", "axioms", "rewrite" or "auto"',
        )


class NoRewritingError(EvermatError, NotImplementedError):
    """An engine that cannot keep representatives of equal constants."""

    code: ClassVar[str] = "EM561"


def require_rewriting(engine: Engine) -> EqualityEngine:
    """Refuse an engine that cannot rewrite equality."""
    if not can_rewrite(engine):
        raise NoRewritingError(
            f"the engine `{engine.name}` cannot rewrite equality",
            help='use `equality="axioms"`, or `equality="off"`',
        )
    return engine


def asks_for_equality(request: CheckedRequest) -> bool:
    """Whether an update brings a rule or a fact about equality."""
    if mentions_equality(request.add_rules):
        return True
    facts = request.insert.get(SAME_AS)
    if facts is not None and facts.num_columns == 2 and facts.num_rows:  # noqa: PLR2004
        return True
    triples = request.insert.get(TRIPLE)
    return triples is not None and _has_same_as(triples)


def _has_same_as(triples: pa.Table | StagedRows) -> bool:
    if triples.num_columns != 3:  # noqa: PLR2004  subject, predicate, object
        return False
    if not isinstance(triples, pa.Table):
        return triples.mentions(1, OWL_SAME_AS)
    terms = as_terms(triples.column(1))
    is_same = pc.and_(
        pc.equal(pc.struct_field(terms, [0]), int(OWL_SAME_AS.kind)),
        pc.equal(pc.struct_field(terms, [1]), OWL_SAME_AS.text),
    )
    return bool(pc.any(is_same).as_py())


def require_usual_arities(catalogue: Catalogue) -> None:
    """Refuse predicates that are not what equality takes them for.

    Raises:
        ArityClashError: `same_as` has not two arguments, or `triple` not three.
    """
    for name, usual in ((SAME_AS, 2), (TRIPLE, 3)):
        known = catalogue.arity(name)
        if known is not None and known != usual:
            where = "where constants are equal"
            raise ArityClashError(name, known=known, found=usual, where=where)


def with_equality(catalogue: Catalogue) -> Catalogue:
    """The predicates, and equality, even if it was only spoken of in triples."""
    if SAME_AS in catalogue:
        return catalogue
    return catalogue.extended([Declaration(SAME_AS, 2)])


def missing_axioms(catalogue: Catalogue, known: Iterable[Rule]) -> tuple[Rule, ...]:
    """The axioms of equality for all predicates, but those that are there already."""
    arities = {each.name: each.arity for each in catalogue}
    arities.setdefault(SAME_AS, 2)
    there = {rule_key(rule) for rule in known}
    return tuple(rule for rule in axioms(arities) if rule_key(rule) not in there)
