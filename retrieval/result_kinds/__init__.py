"""The kinds of results of a test collection, one module each; importing them registers them."""

from retrieval.result_kinds import (  # noqa: F401
    audit,
    comparison,
    evaluation,
    machine,
    pool,
    reuse,
    targets,
)
