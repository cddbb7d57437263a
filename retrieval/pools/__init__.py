"""Pools: which candidates are judged for each target, from which source, and in place of what."""
