"""A shell: queries, updates and explanations, one line after the other."""
