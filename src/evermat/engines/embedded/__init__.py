"""The engine for one machine: columns, sorted indexes, compiled joins.

Where to look, from the outside inwards:

| what                           | where                                               |
| ------------------------------ | --------------------------------------------------- |
| the methods of the engine      | `engine`, `rules`, `closures`, `equality`           |
| facts and their constants      | `store`, `relation`, `index`, `dictionary`          |
| sets of facts, views of them   | `fact_sets`, `views`                                |
| states as files                | `mapped_file`                                       |
| how a query is planned         | `planner`                                           |
| how a plan is run in batches   | `batch`, `expressions`                              |
| what rules derive, put in rows | `dedup`, `sorting`                                  |
| small rounds in one call       | `small_batch`, `bytecode`                           |
| small fixpoints in one call    | `saturation`, `backward`, `triggers`                |
| aggregates of groups           | `aggregates`                                        |
| closures as graphs, compared   | `closure_graphs`, `closure_snapshots`               |
| graphs that stay, searches     |                                                     |
| that few changes bound         | `closure_index`, `closure_search`                   |
| equal constants                | `union_find`                                        |
| threads, memory, arrays        | `cores`, `memory`, `arrays`                         |
| how kernels get machine code   | `runtime`, `machine_code`, `kernel_cache`,          |
|                                | `kernel_sources`                                    |
| how they are compiled          | `compilation`, `compiler`, `compiler_wrappers`,     |
|                                | `warm_up`                                           |

The loops in `kernels` are compiled: each file belongs to the module of the same name,
or is named by it. `kernels.keys` says what all of them have in common, and what keys
and rows are; `kernels.layout` says how they read arrays of which they know the address.
"""

from __future__ import annotations
