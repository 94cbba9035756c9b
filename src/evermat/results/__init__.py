"""The results of queries and updates."""
