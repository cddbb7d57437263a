"""Kinds of results that rest on pages' sentences; importing them registers them."""

from console.collections import reports  # noqa: F401
