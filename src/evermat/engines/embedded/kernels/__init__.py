"""The compiled loops of the embedded engine."""
