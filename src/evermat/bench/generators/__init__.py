"""Seeded generators of benchmark problems: the same arguments give the same facts."""
