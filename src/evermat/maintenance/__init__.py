"""Algorithms that keep a materialisation true while facts and rules change.

Each algorithm is a file that reads like its paper, with a table of notation at its
head, and a function `maintain` that fills the two sets of a `Run`:

| algorithm                    | file                                                  |
| ---------------------------- | ----------------------------------------------------- |
| seminaïve evaluation, INSERT | `seminaive`                                           |
| Counting                     | `counting`                                            |
| DRed; DRed^c                 | `dred`; `dred_counting`                               |
| B/F; B/F^c                   | `backward_forward`; `backward_forward_counting`       |
| FP-update                    | `fixpoint_update`                                     |
| starting again               | `rematerialise`                                       |
| MAT-MOD                      | `modular_materialise`                                 |
| DRed^c-MOD, B/F^c-MOD        | `modular`; what a module is: `modules`, `closures`,   |
|                              | `lazy_closures`                                       |
| B/F^≈, r-materialisation     | `equality.deletion`, `equality.explicit`;             |
|                              | `equality.insertion`                                  |
| proofs                       | `proof`, `equality.proofs`, `equality.contradictions` |

Around them:

| what                       | file                                             |
| -------------------------- | ------------------------------------------------ |
| what algorithms run in     | `context`, `strata`, `updates`                   |
| what they have in common   | `affected`, `derivations`, `counters`            |
| the algorithms by name     | `algorithms`; `auto`: `cost_model`, `statistics` |
| a whole update             | `driver`, `attempt`, `bookkeeping`, `requests`,  |
|                            | `limits`                                         |
| the same with equality     | `equality.update`, `equality.attempt`,           |
|                            | `equality.rules`, `equality.state`,              |
|                            | `equality.names`                                 |
| the rules of a program     | `rule_book`, `compiled_rules`, `rule_changes`    |

The search for proofs is in `evermat.explain`. The two drivers, for programs without
equality and with it, are in `evermat.kb`.
"""
