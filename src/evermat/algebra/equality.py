"""Equal constants: their representatives, and the error where values would be equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from evermat.errors import EvermatError
from evermat.values import NUMERIC_KINDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import pyarrow as pa

    from evermat.values import Constant


class UnequalValuesError(EvermatError, ValueError):
    """Two different values turned out to be equal, which no value ever is.

    Attributes:
        left, right: the values.
        derivation: facts from which that follows in one step.
        given: explicit facts from which it follows, by predicate, if they were looked
            for.
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
        """The full text, the proof after what is wrong."""
        first, *others = super().render().splitlines()
        return "\n".join([first, *(f"  {line}" for line in self.proof), *others])


def _advice(left: Constant, right: Constant) -> str:
    """What can be done about two values that would be equal."""
    if not {left.kind, right.kind} <= NUMERIC_KINDS:
        return "correct the facts or the rules that make them equal"
    return (
        "correct the facts or the rules that make them equal; numbers that identify "
        "things must be names: strings (`frame['id'].astype(str)`, or `@declare p(id: "
        "string) .` for a file), or IRIs where there are triples"
    )


class NoRewritingError(EvermatError, NotImplementedError):
    """An engine that cannot keep representatives of equal constants."""

    code: ClassVar[str] = "EM561"

    def __init__(self, engine: str) -> None:
        super().__init__(
            f"the engine `{engine}` cannot rewrite equality",
            help='use `equality="axioms"`, or `equality="off"`',
        )


class Representatives(Protocol):
    """Which constants are equal, and what stands for them.

    Each clique of equal constants has one that stands for it, a value if there is one.

    A constant that nothing was said about stands for itself. Engines for the same
    constants can exchange these objects.
    """

    def copy(self) -> Representatives:
        """The same cliques, to be changed on their own."""

    def is_identity(self) -> bool:
        """Whether no two constants are equal."""

    def replaced(self, constants: Sequence[Constant]) -> dict[Constant, Constant]:
        """Those of the constants that something else stands for, and what does.

        A caller that asks for the same sequence again is answered faster.
        """

    def cliques(self) -> pa.Table:
        """The members of cliques of two and more, beside their representative."""

    def take_up(self, table: pa.Table) -> None:
        """Have constants stand for others: where no two were equal so far.

        Args:
            table: constants that do not stand for themselves, and what does.
        """

    def normalised(self, table: pa.Table) -> pa.Table:
        """A table with every constant replaced by its representative."""

    def expanded(self, table: pa.Table, names: Collection[int] = ()) -> pa.Table:
        """All rows that the rows of a table of term columns stand for.

        Args:
            table: constants that represent their cliques.
            names: the columns of constants that stand for themselves only.
        """

    def expanded_size(self, table: pa.Table) -> int:
        """How many rows `expanded` would have; the cliques are not multiplied out."""
