"""Proofs of facts, reasons why facts do not hold, plans in words."""
