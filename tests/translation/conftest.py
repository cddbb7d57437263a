"""The people and things of the console's and the marketplace's own tests."""

import pytest

from annotation import label_sets, study_facts
from annotation.result_kinds.base import find_study_kind
from metrics.models import ScoringRequest
from tests.console import filled, work
from tests.console.conftest import _immediate_tasks, researcher  # noqa: F401
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
    row = filled.scored_study("mine", owner=researcher)
    find_study_kind(study_facts.AGREEMENT).compute_now(row)
    filled.store_validation(row)
    filled.add_assignment(filled.add_batch(row).hits.first())
    label_sets.make_label_set(question=row.questions.get(), rule=label_sets.Rule("mean"))
    ScoringRequest.objects.create(study=row, metric="rouge1")
    work.request_for_later(study=row, kind=study_facts.SCORE, names=["rouge1"])
    return row
