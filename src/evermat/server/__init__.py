"""A knowledge base served over HTTP.

| file           | what it holds                                                     |
| -------------- | ----------------------------------------------------------------- |
| `app.py`       | the application: a request from its arrival to its answer          |
| `endpoints.py` | what can be asked for: paths, parameters and the work              |
| `replicas.py`  | two copies of a knowledge base, so that readers never wait         |
| `history.py`   | versions: what each changed, and how to go back to one             |
| `access.py`    | tokens, roles, hosts and origins                                   |
| `limits.py`    | what a request may use                                             |
| `formats.py`   | JSON, CSV, Arrow and RDF, in and out                               |
| `protocol.py`  | the SPARQL 1.1 protocol                                            |
| `openapi.py`   | the description of the interface, made from the endpoints          |
| `metrics.py`   | counts and durations for Prometheus                                |
| `console/`     | the console for browsers                                           |

`evermat serve` starts it.
"""
