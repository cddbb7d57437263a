"""What may be concluded from a plain file: one module a command, each from rows to a record."""
