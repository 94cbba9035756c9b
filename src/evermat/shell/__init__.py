"""An interactive shell for queries, updates and explanations."""
