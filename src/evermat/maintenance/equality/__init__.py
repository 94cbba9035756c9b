"""Maintenance with equal constants replaced by their representatives."""
