"""Readers of rule languages that are not ours, into the same `Program` objects."""
