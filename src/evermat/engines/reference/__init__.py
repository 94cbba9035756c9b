"""The slow, obvious engine that defines the meaning of the algebra.

Facts are tuples of constants in Python sets, counters are dictionaries, and a query is
answered by backtracking. Every operator is written as its definition in
`evermat.algebra` says, copies what it likes, and is there to be compared with.
"""

from evermat.engines.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
