"""A knowledge base served over HTTP.

| file           | contents                                                          |
| -------------- | ----------------------------------------------------------------- |
| `app.py`       | the application: a request from its arrival to its answer         |
| `endpoints.py` | the endpoints: paths, parameters and the work                     |
| `replicas.py`  | two copies of a knowledge base, so that readers never wait        |
| `history.py`   | versions: what each changed, and how to restore one               |
| `access.py`    | tokens, roles, hosts and origins                                  |
| `limits.py`    | limits of requests                                                |
| `formats.py`   | JSON, CSV, Arrow and RDF, in and out                              |
| `protocol.py`  | the SPARQL 1.1 protocol                                           |
| `openapi.py`   | the description of the interface, generated from the endpoints    |
| `metrics.py`   | counts and durations for Prometheus                               |
| `console/`     | the console for browsers                                          |

`evermat serve` starts it.
"""
