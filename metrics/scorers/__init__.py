"""Automatic metrics for one response at a time: plain Python, usable from a notebook.

``scorer`` holds the interface, ``registry`` the list of names. A new metric is one new module
with one ``Scorer`` in it, and one line in the registry.
"""
