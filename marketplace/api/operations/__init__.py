"""The operations, one module per noun."""

from marketplace.api.operations import (
    account,
    assignments,
    bonuses,
    hit_types,
    hits,
    notifications,
    qualification_types,
    qualifications,
    reviews,
    workers,
)

__all__ = [
    "account",
    "assignments",
    "bonuses",
    "hit_types",
    "hits",
    "notifications",
    "qualification_types",
    "qualifications",
    "reviews",
    "workers",
]
