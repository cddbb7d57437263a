"""The people and things of the console's and the marketplace's own tests."""

from tests.console.conftest import _immediate_tasks, researcher
from tests.console.test_access import study
from tests.marketplace.conftest import (
    keys,
    make_keys,
    make_worker,
    marketplace_clock,
    mturk,
    requester,
    worker,
)
from tests.marketplace.test_pages_in_a_browser import busy_worker

__all__ = [
    "_immediate_tasks",
    "busy_worker",
    "keys",
    "make_keys",
    "make_worker",
    "marketplace_clock",
    "mturk",
    "requester",
    "researcher",
    "study",
    "worker",
]
