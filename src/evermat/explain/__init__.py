"""Explanations: proofs of facts, reasons why facts do not hold, and plans as text."""
