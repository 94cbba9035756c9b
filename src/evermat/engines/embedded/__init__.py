"""The engine for one machine: columns, sorted indexes, compiled joins.

Where to look, from the outside inwards:

| what                           | where                                               |
| ------------------------------ | --------------------------------------------------- |
| the methods of the engine      | `engine`, `rules`, `closures`, `equality`           |
| facts and their constants      | `store`, `relation`, `index`, `dictionary`,         |
|                                | `id_cache`                                          |
| sets of facts, views as masks  | `sets`, `settled`, `bits`, `view_masks`, `regions`, |
|                                | `flat`                                              |
| counts, transactions, copies   | `counters`, `journal`, `snapshot`                   |
| how a query is planned         | `plan`, `plan_cache`, `statistics`                  |
| how a plan is run in batches   | `evaluation`, `operators`, `expressions`, `solving` |
| what rules derive, put in rows | `heads`, `in_order`, `wide`, `sorting`, `merging`,  |
|                                | `fresh_rows`                                        |
| small rounds in one call       | `small_batch`, `bytecode`, `proving`                |
| small fixpoints in one call    | `saturation`, `backward`, `triggers`, `fact_keys`,  |
|                                | `recent`                                            |
| closures as graphs             | `closure_graphs`, `closure_pairs`,                  |
|                                | `closure_comparison`, `closure_snapshots`           |
| graphs that stay, searches     | `closure_indexes`, `closure_index`,                 |
| that few changes bound         | `closure_search`, `external`, `fitting`             |
| equal constants                | `representatives`, `clique_arrays`, `rewriting`,    |
|                                | `small_rewriting`                                   |
| few facts that go, in two      | `equality_deletion`, `equality_component`,          |
|                                | `kernels.equality_steps`, `kernels.equality_search` |
| threads, memory, arrays        | `cores`, `memory`, `large_arrays`, `arrays`         |
| how kernels get machine code   | `runtime`, `machine_code`, `kernel_cache`, `image`, |
|                                | `kernel_sources`                                    |
| how they are compiled          | `compilation`, `compiler`, `compiler_wrappers`,     |
|                                | `compiler_memory`, `warm_up`                        |

The loops in `kernels` are compiled: each file belongs to the module of the same name,
or is named by it. `kernels.keys` says what all of them have in common, and what keys
and rows are; `kernels.layout` and `kernels.raw` are how they read arrays of which they
know the address.
"""

from __future__ import annotations
