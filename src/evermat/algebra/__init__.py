"""The algebra that algorithms are written in, and the contract an engine fulfils.

This folder is all that an engine author must read, and `engine` is the list of what to
write. Algorithms (`evermat.maintenance`) are programs over the algebra; an engine
(`evermat.engines.*`) runs them on Python sets, on columns or on Spark. Algorithms never
see an array, engines never see datalog.

**Facts.** A *fact* is a relation name and a row of constants. `Facts` stands for a set
of facts over all relations. There are three sorts of sets:

- *stored* sets: `engine.materialised` and `engine.explicit`, possibly huge;
- *growing* sets (`engine.growing()`): what an update accumulates, such as the deleted
  facts; they change in place, and everything built from them sees the change;
- *settled* sets: fixed and small, the results of `derive`, `settle` and `intern`.

`a | b`, `a - b`, `a & b` and `a.within(region)` build *views*. A view costs nothing, is
never copied, and always means the current contents of its parts. `settle` turns a view
into a settled set; the work must follow the settled and growing parts of the view, so
`settle(candidates - deleted)` is fine, and settling a whole stored set is refused.

**Queries.** A `Query` is one select-project-join block: a head, patterns that must
match, patterns that must not, computations, and inline rows. Each pattern has a *role*
that says which view it reads, which is how one rule is split by the position that
changed. A query yields a multiset: one head fact for each match.

**Saturation.** `engine.saturate` applies rules until nothing is new: the one loop of
all forward algorithms. `fixpoint` defines it by the other operators.

**Aggregates.** `engine.aggregate` works out one fact for each group of the facts of a
relation, `engine.aggregate_changes` what a change means for them. `aggregates` defines
both by the other operators.

**Proving.** `engine.prove` finds out which facts have a derivation that survives, by
backward chaining. `fixpoint` defines it by the other operators.

Contract of an engine, each point with a test in `tests/algebra`:

1. Sets have set semantics; counts are exact: each match of a query is counted once.
2. `derive(queries, views)` are the facts of `derive_counts(queries, views)`.
3. Views are by reference: a growing set that changed has changed in every view.
4. Settled sets never change, whatever happens to the sets they came from.
5. A failed call raises and leaves the engine usable; between `begin` and `commit`,
   `rollback` restores facts, explicit facts and counters.
6. What a journal receives adds up to what is stored, and `reinstate` brings it back.
7. Order never matters, neither of rows nor of queries.
8. `saturate` leaves the facts and counts that its definition in `fixpoint` leaves.
9. `prove` returns the facts that its definition in `fixpoint` returns.
10. `aggregate` and `aggregate_changes` return what their definition in `aggregates`
    returns.
"""

from __future__ import annotations

from evermat.algebra.aggregates import Aggregate, AggregatesByGroup, Regrouped
from evermat.algebra.engine import (
    STORED_NUMBERS,
    ClosureSnapshot,
    Engine,
    Journal,
    Monitor,
    Snapshot,
    StoredChange,
)
from evermat.algebra.facts import (
    Counters,
    Counts,
    Difference,
    EngineUseError,
    Facts,
    GrowingFacts,
    Intersection,
    SettledFacts,
    StoredFacts,
    Union,
    Within,
    is_bounded,
    require_bounded,
)
from evermat.algebra.fixpoint import (
    Application,
    OwnSupport,
    ProofSearch,
    ProofWork,
    Rounds,
    Saturation,
    apply_first,
    apply_round,
    apply_rules,
    apply_step,
    prove,
    saturate,
)
from evermat.algebra.queries import (
    Apply,
    Closure,
    ClosureKind,
    Column,
    Compute,
    Expression,
    InlineRows,
    Operand,
    Pattern,
    Query,
    QuerySet,
    Region,
    Require,
    Role,
    Views,
)

__all__ = [
    "STORED_NUMBERS",
    "Aggregate",
    "AggregatesByGroup",
    "Application",
    "Apply",
    "Closure",
    "ClosureKind",
    "ClosureSnapshot",
    "Column",
    "Compute",
    "Counters",
    "Counts",
    "Difference",
    "Engine",
    "EngineUseError",
    "Expression",
    "Facts",
    "GrowingFacts",
    "InlineRows",
    "Intersection",
    "Journal",
    "Monitor",
    "Operand",
    "OwnSupport",
    "Pattern",
    "ProofSearch",
    "ProofWork",
    "Query",
    "QuerySet",
    "Region",
    "Regrouped",
    "Require",
    "Role",
    "Rounds",
    "Saturation",
    "SettledFacts",
    "Snapshot",
    "StoredChange",
    "StoredFacts",
    "Union",
    "Views",
    "Within",
    "apply_first",
    "apply_round",
    "apply_rules",
    "apply_step",
    "is_bounded",
    "prove",
    "require_bounded",
    "saturate",
]
