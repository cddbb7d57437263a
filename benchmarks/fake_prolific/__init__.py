"""A stateful fake of Prolific's API, for tests and for trying things out: no part of the site.

Written from documented facts; the shapes in `schema.yaml` are ours, and so are their mistakes.
"""
