"""Maintenance where equal constants are replaced by representatives."""
