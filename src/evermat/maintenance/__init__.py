"""Algorithms that keep a materialisation true while facts and rules change.

Each algorithm is a file that reads like its paper, with a table of notation at its
head, and a function `maintain` that fills the two sets of a `Run`:

| algorithm                     | file                                             |
| ----------------------------- | ------------------------------------------------ |
| seminaïve evaluation, INSERT  | `seminaive`                                      |
| Counting                      | `counting`                                       |
| DRed; DRed^c                  | `dred`; `dred_counting`                          |
| B/F; B/F^c                    | `backward_forward`; `backward_forward_counting`  |
| FP-update                     | `fixpoint_update`                                |
| starting again                | `rematerialise`                                  |
| MAT-MOD                       | `modular_materialise`                            |
| DRed^c-MOD, B/F^c-MOD         | `modular`; what a module is: `modules`,          |
|                               | `closures`, `holding`                            |
| B/F^≈, r-materialisation      | `equality`, `equality_told`;                     |
|                               | `equality_insertion`                             |
| proofs                        | `explain`, `explain_equality`, `why_not`,        |
|                               | `contradictions`, `proof`, `proof_heights`,      |
|                               | `proof_instances`                                |

Around them:

| what                          | file                                             |
| ----------------------------- | ------------------------------------------------ |
| what algorithms run in        | `run`, `strata`, `updates`                       |
| what they have in common      | `affected`, `derivations`, `counters`            |
| the algorithms by name        | `algorithms`; `auto`: `choose`, `history`        |
| a whole update                | `driver`, `materialisation`, `attempt`,          |
|                               | `bookkeeping`, `requests`, `watch`               |
| the same with equality        | `equality_materialisation`, `equality_update`,   |
|                               | `equality_attempt`, `equality_rules`,            |
|                               | `equality_state`                                 |
| updates left to the engine    | `whole_updates`                                  |
| the rules of a program        | `rule_book`, `compiled_rules`, `rule_updates`    |
"""
