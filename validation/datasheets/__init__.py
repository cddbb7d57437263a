"""Datasheets of a study: how it came about, with what the database knows of it."""
