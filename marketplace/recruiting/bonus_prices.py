"""What a bonus costs with the recruiter's fees, as it says itself, before anybody pays it.

Set up and never paid, a bonus costs nothing there: whoever pays it later has another set up.
"""

from __future__ import annotations

from decimal import Decimal

from django.utils.translation import gettext as _

from marketplace.exceptions import InvalidParameter
from marketplace.models import RecruitedStudy
from marketplace.recruiting.connections import required_recruiter
from marketplace.recruiting.decisions import participation_of, require_bonus_amount
from marketplace.recruiting.problems import RecruiterProblem
from marketplace.recruiting.records import Bonus, Cost


def price_bonus(*, study: RecruitedStudy, worker_id: str, bonus: Decimal) -> Cost:
    """What a bonus of this amount costs for a participant of the study, or of its HITs there."""
    recruiter = required_recruiter(study.connection)
    require_bonus_amount(bonus)
    session = participation_of(study, worker_id)
    try:
        prepared = recruiter.bonus_prepare(
            session.study.external_id, [Bonus(session.submission_id, bonus)]
        )
    except (RecruiterProblem, ValueError) as problem:
        text = _("What the bonus costs was not heard: {problem}")
        raise InvalidParameter(text.format(problem=problem), code="unknown_price") from problem
    study.quoted_bonus, study.quoted_bonus_cost = bonus, prepared.total
    study.save(update_fields=["quoted_bonus", "quoted_bonus_cost"])
    return Cost(prepared.total, prepared.currency)
