"""What the review desk says of a participant whom a recruiter pays: their other items, which are
decided alike, and what is between the recruiter and a decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from error_codes import CodedText
from hits.drafts import currency_of
from hits.models import Assignment, RecruiterCall
from hits.participations import items_of_participation, standing_of

# What a participation ended as, by the code that was given for it.
OUTCOMES = {
    "completed": gettext_lazy("Completed"),
    "no_consent": gettext_lazy("Did not consent"),
    "incompatible_device": gettext_lazy("Device does not do"),
    "failed_attention": gettext_lazy("Failed checks"),
    "screened_out": gettext_lazy("Screened out"),
    "no_more_items": gettext_lazy("Came when no items were left"),
    "follow_up": gettext_lazy("Go on in a later study"),
}


@dataclass(frozen=True)
class ParticipantNote:
    """`items` are all of the participation's, the one looked at among them; `problems`
    how the participant stands at the recruiter, then what somebody must look after
    there, or what it refused."""

    items: Sequence[Assignment]
    problems: Sequence[str]
    currency: str

    @property
    def is_paid_in_dollars(self) -> bool:
        return self.currency == "USD"


def participant_note(assignment: Assignment) -> ParticipantNote | None:
    """Of an assignment that a participant did; None of any other."""
    batch = assignment.hit.batch
    if not batch.is_recruited:
        return None
    mine = items_of_participation(assignment)
    calls = RecruiterCall.objects.to_look_after().filter(
        recruitment__batch=batch, worker_id=assignment.worker.worker_id
    )
    calls = calls.exclude(problem="")
    return ParticipantNote(
        items=list(
            mine.select_related("hit__item")
            .prefetch_related("drafts")
            .order_by("submitted_at", "pk")
        ),
        problems=[
            *_standing(assignment),
            *calls.order_by("-is_uncertain", "-number").values_list("problem", flat=True),
        ],
        currency=currency_of(batch),
    )


def _standing(assignment: Assignment) -> Iterator[str]:
    """What of the participant at the recruiter a decision on the work should know."""
    for one in standing_of(assignment):
        name = one.recruitment.recruiter
        if one.state == "returned":
            text = _(
                "They gave their place back at {recruiter}: whatever is decided here, nothing is "
                "paid there unless it is approved there by hand."
            )
            yield CodedText(text.format(recruiter=name), "place_returned")
        elif one.state == "timed_out" and one.outcome == "completed" and not one.reported:
            text = _(
                "All of their work came, but no code was entered at {recruiter} in time. A "
                "decision is sent once the code is, or after a day: an approval pays them then, "
                "and a rejection may be refused, where nothing is paid anyway."
            )
            yield CodedText(text.format(recruiter=name), "code_missing")
        elif one.state == "timed_out" and one.outcome != "completed":
            text = _(
                "Their time ran out at {recruiter} before all of their work came: whatever is "
                "decided here, nothing is paid there unless it is approved there by hand."
            )
            yield CodedText(text.format(recruiter=name), "out_of_time")
        if one.reported and one.reported != one.outcome:
            text = _("The code that they entered at {recruiter} is that of: {outcome}.")
            label = OUTCOMES.get(one.reported, gettext_lazy("none of this study"))
            yield CodedText(text.format(recruiter=name, outcome=label), "other_code")
