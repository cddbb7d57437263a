"""Killing the parts of a running site at random: ``python -m benchmarks.faults``."""
