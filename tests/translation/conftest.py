"""The people and things of the console's and the marketplace's own tests."""

import pytest

from annotation.label_sets import Rule, make_label_set
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, SCORE
from metrics.models import ScoringRequest
from tests.console.conftest import _immediate_tasks, researcher  # noqa: F401
from tests.console.filled import add_assignment, add_batch, scored_study, store_validation
from tests.console.work import request_for_later
from tests.marketplace.conftest import (  # noqa: F401
    keys,
    make_keys,
    make_worker,
    marketplace_clock,
    mturk,
    requester,
    worker,
)
from tests.marketplace.test_pages_in_a_browser import busy_worker  # noqa: F401


@pytest.fixture
def study(researcher):  # noqa: F811
    row = scored_study("mine", owner=researcher)
    find_study_kind(AGREEMENT).compute_now(row)
    store_validation(row)
    add_assignment(add_batch(row).hits.first())
    make_label_set(question=row.questions.get(), rule=Rule("mean"))
    ScoringRequest.objects.create(study=row, metric="rouge1")
    request_for_later(study=row, kind=SCORE, names=["rouge1"])
    return row
