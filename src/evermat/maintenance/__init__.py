"""Algorithms that maintain a materialisation while facts and rules change.

Each algorithm is a file that follows its paper, with a table of notation at the top,
and a function `maintain` that fills the two sets of a `Run`:

| algorithm                    | file                                            |
| ---------------------------- | ----------------------------------------------- |
| seminaïve evaluation, INSERT | `seminaive`; also rematerialisation             |
| Counting                     | `counting`                                      |
| DRed; DRed^c                 | `dred`; `dred_counting`                         |
| B/F, B/F^c                   | `backward_forward`                              |
| FP-update                    | `fixpoint_update`                               |
| MAT-MOD, DRed^c-MOD,         | `modular`; the interface of modules: `modules`; |
| B/F^c-MOD                    | `lazy_closures`                                 |
| B/F^≈                        | `equality.deletion`                             |
| r-materialisation            | `equality.update`                               |
| results of aggregates        | `aggregates`; in recursion: `monotone`          |
| proofs                       | `proof`, `equality.proofs`                      |

Around them:

| part                         | file                                            |
| ---------------------------- | ----------------------------------------------- |
| the context of an algorithm  | `context`; its input and output: `update`       |
| the algorithms by name       | `algorithms`; `auto`: `cost_model`              |
| a whole update               | `driver`; its limits: `limits`                  |
| the same with equality       | `equality.update`, `equality.program`           |
| the rules of a program       | `rules`                                         |

The search for proofs is in `evermat.explain`. The two drivers, for programs without
equality and with it, are in `evermat.kb`.
"""
