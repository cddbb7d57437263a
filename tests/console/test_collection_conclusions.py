"""Targets, judgments and the report of a collection, on their pages."""
