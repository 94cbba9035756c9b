"""Relational algebra for maintenance algorithms, and the contract of an engine.

Algorithms (`evermat.maintenance`) are programs over this algebra; an engine
(`evermat.engines.*`) evaluates them on Python sets, on columns or on Spark. Algorithms
never see an array, and engines never see datalog. An engine author needs to read this
package only; `engine` lists the methods to implement.

**Facts.** A *fact* is a relation name and a row of constants. `Facts` represents a set
of facts over all relations. There are three kinds of sets:

- *stored* sets: `engine.materialised` and `engine.explicit`, possibly huge;
- *growing* sets (`engine.growing()`): accumulated by an update, such as the deleted
  facts; they change in place, and every view over them sees the change;
- *settled* sets: fixed and small, the results of `derive`, `settle` and `intern`.

`a | b`, `a - b`, `a & b` and `a.within(region)` build *views*. A view costs nothing, is
never copied, and always reflects the current contents of its parts. `settle` evaluates
a view into a settled set. The work must be proportional to the settled and growing
parts of the view, so `settle(candidates - deleted)` is fine, and settling a whole
stored set is refused.

**Queries.** A `Query` is one select-project-join block: a head, patterns that must
match, patterns that must not, computations, and inline rows. Each pattern has a *role*
that says which view it reads, which is how one rule is split by the position that
changed. A query yields a multiset: one head fact for each match.

**Saturation.** `engine.saturate` applies rules until no new facts are derived: the one
loop of all forward algorithms. `fixpoint` defines it in terms of the other operators.

**Aggregates.** `engine.aggregate` computes one fact for each group of the facts of a
relation, and `engine.aggregate_changes` the effect of a change on these. `aggregates`
defines both in terms of the other operators.

**Proving.** `engine.prove` determines by backward chaining which facts have a
derivation that survives a change. `fixpoint` defines it in terms of the other
operators.

Contract of an engine, each point with a test in `tests/algebra`:

1. Sets have set semantics; counts are exact: each match of a query is counted once.
2. `derive(queries, views)` returns the facts of `derive_counts(queries, views)`.
3. Views are by reference: a growing set that changed has changed in every view.
4. Settled sets never change, whatever happens to the sets they came from.
5. A failed call raises and leaves the engine usable; between `begin` and `commit`,
   `rollback` restores facts, explicit facts and counters.
6. The changes that a journal receives add up to the stored facts, and `reinstate`
   restores these from the sum.
7. Order never matters, neither of rows nor of queries.
8. `saturate` produces the same facts and counts as its definition in `fixpoint`.
9. `prove` returns the same facts as its definition in `fixpoint`.
10. `aggregate` and `aggregate_changes` return the same facts as their definitions in
    `aggregates`.
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
