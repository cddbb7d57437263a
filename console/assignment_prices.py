"""What an assignment of a study costs, for reports that say what to buy next."""

from __future__ import annotations

from functools import partial

from annotation.models import Study
from hits.costs import cost_of_assignment, latest_batch_of
from validation.documents.purchase_prices import AssignmentPrice


def assignment_price(study: Study) -> AssignmentPrice | None:
    """As the study's last batch pays and its marketplace charges; None before there is one,
    and of participants, whom their recruiter pays."""
    batch = latest_batch_of(study)
    if batch is None or batch.is_recruited:
        return None
    return AssignmentPrice(batch.reward_usd, partial(cost_of_assignment, batch))
