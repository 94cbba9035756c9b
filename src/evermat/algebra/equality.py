"""Representatives of equal constants, and the error for values that would be equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.errors import EvermatError
from evermat.values import NUMERIC_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from evermat.values import Constant


class UnequalValuesError(EvermatError, ValueError):
    """Two different values are derived to be equal, which values never are.

    Attributes:
        left, right: the values.
        derivation: facts that imply the equality in one step.
        given: explicit facts that imply it, by predicate, if they were searched for.
        explanation: the proof, an `evermat.explain.explanation.Explanation`, if there
            is one; `proof` is its text.
    """

    code: ClassVar[str] = "EM606"

    def __init__(
        self,
        left: Constant,
        right: Constant,
        derivation: Sequence[str] = (),
        given: Mapping[str, pa.Table] | None = None,
    ) -> None:
        left, right = sorted((left, right), key=str)
        self.left = left
        self.right = right
        self.derivation = tuple(derivation)
        self.given = given
        self.explanation: object | None = None
        self.proof: tuple[str, ...] = ()
        because = f", because {'; '.join(derivation)}" if derivation else ""
        super().__init__(
            f"the facts are contradictory: {left} and {right} would be equal{because}",
            reason="names can be equal, two different values never are",
            help=_advice(left, right),
        )

    def render(self) -> str:
        """Return the full text: the message and the proof."""
        first, *others = super().render().splitlines()
        return "\n".join([first, *(f"  {line}" for line in self.proof), *others])


def _advice(left: Constant, right: Constant) -> str:
    """Suggest how to resolve an equality between two values."""
    if not {left.kind, right.kind} <= NUMERIC_KINDS:
        return "correct the facts or the rules that make them equal"
    return (
        "correct the facts or the rules that make them equal; numbers that identify "
        "things must be names: strings (`frame['id'].astype(str)`, or `@declare p(id: "
        "string) .` for a file), or IRIs where there are triples"
    )


class NoRewritingError(EvermatError, NotImplementedError):
    """The engine cannot store representatives of equal constants."""

    code: ClassVar[str] = "EM561"

    def __init__(self, engine: str) -> None:
        super().__init__(
            f"the engine `{engine}` cannot rewrite equality",
            help='use `equality="axioms"`, or `equality="off"`',
        )


class Representatives(Protocol):
    """Cliques of equal constants and their representatives.

    Each clique has one representative, a value if it contains one. A constant that was
    never merged is its own representative. Engines over the same constants can exchange
    these objects.
    """

    def copy(self) -> Representatives:
        """Return an independent copy of the cliques."""

    def is_identity(self) -> bool:
        """Return whether no two constants are equal."""

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Map those of the constants that have another representative to it.

        A repeated call with the same sequence is faster.
        """

    def cliques(self) -> pa.Table:
        """Return the members of cliques of at least two, with their representatives."""

    def take_up(self, table: pa.Table) -> None:
        """Set representatives, where no two constants were equal before.

        Args:
            table: constants that are not their own representatives, and these.
        """

    def normalised(self, table: pa.Table) -> pa.Table:
        """Return a table with every constant replaced by its representative."""

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """Return all rows that the rows of a table of term columns represent.

        Args:
            table: rows of representatives.
            names: the columns whose constants are not expanded.
        """

    def expanded_size(self, table: pa.Table) -> int:
        """Return the number of rows of `expanded`, without computing these."""
