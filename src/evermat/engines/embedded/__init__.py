"""The engine for one machine: columns, sorted indexes, compiled joins."""
