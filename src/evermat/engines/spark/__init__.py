"""The Spark engine: relations as data frames of ids, rules as Spark plans."""
