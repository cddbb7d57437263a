"""The kinds of results of a test collection, one module each."""
