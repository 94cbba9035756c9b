"""The engine for one machine: columns, sorted indexes, compiled joins.

A map of the folder, from the outside inwards:

| part                           | where                                               |
| ------------------------------ | --------------------------------------------------- |
| the methods of the engine      | `engine`, `rules`, `closures`, `equality`           |
| facts and their constants      | `store`, `relation`, `index`, `dictionary`          |
| sets of facts, views of them   | `fact_sets`, `views`                                |
| states as files                | `mapped_file`                                       |
| query planning                 | `planner`                                           |
| plans in batches               | `batch`, `expressions`                              |
| deduplication of derived facts | `dedup`, `sorting`                                  |
| small rounds in one call       | `small_batch`, `bytecode`                           |
| small fixpoints in one call    | `saturation`, `backward`, `triggers`                |
| aggregates of groups           | `aggregates`, `group_orders`                        |
| closures as graphs, compared   | `closure_graphs`, `closure_snapshots`               |
| kept graphs, bounded searches  | `closure_index`, `closure_search`                   |
| equal constants                | `union_find`                                        |
| threads, memory, arrays        | `cores`, `memory`, `arrays`                         |
| machine code of kernels        | `runtime`, `machine_code`, `kernel_cache`,          |
|                                | `kernel_sources`                                    |
| compiling kernels              | `compilation`, `compiler`, `compiler_wrappers`,     |
|                                | `warm_up`                                           |

The life of a fact, from its first row to its last, is described in `relation`. The
loops in `kernels` are compiled: each file belongs to the module of the same name, or is
named by it. `kernels.keys` explains keys and rows, which all of them share;
`kernels.layout` explains how they read arrays by address.
"""

from __future__ import annotations
