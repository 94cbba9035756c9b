"""The Spark engine: relations as data frames of ids, rules as Spark plans.

A map of the folder, from the outside inwards:

| part                             | where                                        |
| -------------------------------- | -------------------------------------------- |
| on the driver while facts fit    | `adaptive`, `driver_engine`, `limits`        |
| the methods of the engine        | `engine`, `rules`, `closures`, `equality`    |
| sets of facts, and views of them | `sets`, `counters`, `journal`                |
| facts of a state, in its files   | `stored_facts`                               |
| rows, local and distributed      | `blocks`, `rows`, `row_tables`, `summaries`  |
| rules as plans                   | `evaluation`, `queries`, `reading`,          |
|                                  | `expressions`, `heavy_keys`                  |
| limits of memory                 | `joins`, `failures`                          |
| rules without a plan             | `on_driver`, `nearby`, `one_task`, `pieces`  |
| aggregates of groups             | `aggregates`                                 |
| fixpoints in one pass            | `fixpoint`, `decomposition`, `inside_tasks`  |
| constants                        | `dictionary`, `terms`, `encoding`,           |
|                                  | `decoding`                                   |
| closures                         | `closure_snapshots`, `spreading`             |
| equal constants                  | `representatives`, `rewriting`               |
| fetching few rows                | `lookups`, `row_keys`                        |
| sessions, tasks and their files  | `session`, `tasks`, `task_files`, `staging`, |
|                                  | `checkpoint_place`                           |
"""
