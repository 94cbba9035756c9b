"""The engine for one machine: columns, sorted indexes, compiled joins.

Where to look, from the outside inwards:

| what                           | where                                               |
| ------------------------------ | --------------------------------------------------- |
| the methods of the engine      | `engine`, `rules`, `closure`, `equality`            |
| facts and their constants      | `store`, `relation`, `index`, `dictionary`,         |
|                                | `remembered_ids`                                    |
| sets of facts, views as masks  | `sets`, `settled`, `bits`, `codes`, `regions`,      |
|                                | `flat`                                              |
| counts, transactions, copies   | `counters`, `stored`, `snapshot`                    |
| how a query is planned         | `plan`, `plans`, `statistics`                       |
| how a plan is run in batches   | `evaluate`, `stages`, `expressions`, `solving`      |
| what rules derive, put in rows | `heads`, `in_order`, `wide`, `sorting`, `merging`,  |
|                                | `fresh_rows`                                        |
| small rounds in one call       | `at_once`, `programs`, `proving`                    |
| small fixpoints in one call    | `saturation`, `backward`, `wiring`, `fact_keys`     |
| closures as graphs             | `closure_graphs`, `closure_pairs`,                  |
|                                | `closure_comparison`, `captured`                    |
| graphs that stay, searches     | `closure_indexes`, `closure_index`,                 |
| that few changes bound         | `closure_search`, `external`, `fitting`             |
| equal constants                | `representatives`, `clique_arrays`, `rewriting`,    |
|                                | `images`                                            |
| few facts that go, in two      | `withdrawals`, `component`, `kernels_names`,        |
|                                | `kernels_search`                                    |
| threads, memory, arrays        | `cores`, `memory`, `large_arrays`, `arrays`         |
| how kernels get machine code   | `runtime`, `machine_code`, `kernel_cache`, `image`, |
|                                | `kernel_sources`                                    |
| how they are compiled          | `compilation`, `compiler`, `compiler_wrappers`,     |
|                                | `compiler_memory`, `warm_up`                        |

The loops are compiled: each `kernels_….py` belongs to the module of the same name, or
is named by it. `kernels` says what all of them have in common, and what keys and rows
are; `layout` and `raw` are how they read arrays of which they know the address.
"""

from __future__ import annotations
