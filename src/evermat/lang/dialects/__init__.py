"""Readers of other rule languages, into the same `Program` objects."""
