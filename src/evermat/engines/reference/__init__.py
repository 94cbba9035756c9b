"""The slow, obvious engine that defines the meaning of the algebra.

Facts are tuples of constants in Python sets, counters are dictionaries, and queries are
evaluated by backtracking. Every operator follows its definition in `evermat.algebra`,
copies freely, and serves as a reference for other engines.
"""

from evermat.engines.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine"]
