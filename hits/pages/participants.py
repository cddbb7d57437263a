from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from django import forms
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from hits.drafts import currency_of
from hits.models import Assignment, Batch, Recruiter, RecruiterCall, Recruitment
from hits.pages.offers import (
    ActionForm,
    AmountForm,
    BonusForm,
    OfferForm,
    ParticipantForm,
    PriceForm,
    proposed,
    too_many,
    wanted_help,
)
from hits.participants import BONUS, Bonus, bonuses_of, items_of_participation, standing_of
from hits.recruited_batches import (
    DISCARD,
    ERASE,
    PAUSE,
    PLACES,
    PRICE,
    PRICE_BONUS,
    PUBLISH,
    RESUME,
    STOP,
    jobs_of_batch,
    judgments_wanted,
    places_wanted,
)
from hits.wages import CENT, duration_of, study_texts
from work.models import Job

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
    items: Sequence[Assignment]
    problems: Sequence[str]
    currency: str

    @property
    def is_paid_in_dollars(self) -> bool:
        return self.currency == "USD"


def participant_note(assignment: Assignment) -> ParticipantNote | None:
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
            *_standing_texts(assignment),
            *calls.order_by("-is_uncertain", "-number").values_list("problem", flat=True),
        ],
        currency=currency_of(batch),
    )


def _standing_texts(assignment: Assignment) -> Iterator[str]:
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
            yield CodedText(
                text.format(
                    recruiter=name,
                    outcome=OUTCOMES.get(one.reported, gettext_lazy("none of this study")),
                ),
                "other_code",
            )


State = Recruitment.State
MOST_BONUSES = 100
AMOUNT_NEEDED = (PUBLISH, PLACES)
BONUS_ACTIONS = (BONUS, PRICE_BONUS)
# Of the form of an action, what is requested with it.
VALUES = {
    **dict.fromkeys(AMOUNT_NEEDED, ("confirmed",)),
    **dict.fromkeys(BONUS_ACTIONS, ("worker_id", "amount", "reason")),
    **{PRICE: ("places",), ERASE: ("worker_id",)},
}


@dataclass
class RecruitView:
    # `action` and `data` are what somebody pressed, if it was refused.

    batch: Batch
    action: str = ""
    data: Mapping[str, Any] | None = None
    problem: CodedText | str = ""
    actions: tuple[str, ...] = field(default=(PAUSE, RESUME, STOP, DISCARD), init=False)

    @cached_property
    def recruiters(self) -> list[Recruiter]:
        return [
            one
            for one in Recruiter.objects.filter(connection=self.batch.connection_id)
            if one.is_connected
        ]

    @cached_property
    def studies(self) -> list[Recruitment]:
        return list(
            Recruitment.objects.filter(batch=self.batch).select_related("recruiter").order_by("-pk")
        )

    @property
    def study(self) -> Recruitment | None:
        return next(iter(self._standing), None)

    @property
    def earlier(self) -> list[tuple[Recruitment, list[tuple[CodedText, int]]]]:
        return [(one, self._states_of(one)) for one in self._standing[1:]]

    @cached_property
    def _standing(self) -> list[Recruitment]:
        return [one for one in self.studies if one.state not in Recruitment.OVER]

    @property
    def with_files(self) -> list[Recruitment]:
        return [one for one in self.studies if one.public_id and any(one.sessions.values())]

    @property
    def has_completed(self) -> bool:
        return any(
            one.outcomes.get("completed")
            for one in self.studies
            if self.study and one.recruiter_id == self.study.recruiter_id
        )

    @property
    def refused(self) -> Recruitment | None:
        newest = next(iter(self.studies), None)
        return newest if newest and newest.state == State.REFUSED else None

    @cached_property
    def job(self) -> Job | None:
        return jobs_of_batch(self.batch).first()

    @property
    def is_under_way(self) -> bool:
        return bool(self.job and self.job.is_unfinished)

    @property
    def may_draft(self) -> bool:
        is_over = self.study is None or self.study.state == State.STOPPED
        return bool(self.recruiters) and is_over and not self.is_under_way

    @cached_property
    def form(self) -> OfferForm:
        if self.action == "draft" and self.data is not None:
            return OfferForm(self.batch, self.data)
        initial: dict[str, Any] = proposed(
            self.batch, duration_of(self.batch.study, study_texts(self.batch.study))
        )
        if self.recruiters:
            initial["recruiter"] = self.recruiters[0].pk
        if last := next(iter(self.studies), None):  # refused, or discarded for another price
            terms = {"items": last.items, "minutes": last.minutes, "reward": last.reward}
            initial |= terms | {"devices": last.devices, "recruiter": last.recruiter_id}
            initial |= {"filters": "\n".join(last.filters), "labels": last.labels}
            initial |= {
                "screen_out_reward": last.screen_out_reward,
                "screen_out_places": last.screen_out_places or None,
            }
        return OfferForm(self.batch, initial=initial)

    @property
    def price_form(self) -> PriceForm:
        given = self.data if self.action == PRICE else None
        present: int = self.study.places if self.study else 0
        form = PriceForm(
            given,
            initial={"places": present + max(1, self.n_to_add)},
            auto_id="id_price_%s",
            label_suffix="",
        )
        has = ngettext(
            "There is %(n)s place now, %(free)s free.",
            "There are %(n)s places now, %(free)s free.",
            present,
        ) % {"n": f"{present:,}", "free": f"{self.n_free:,}"}
        form.fields["places"].help_text = f"{has} {wanted_help(self.n_wanted, self.n_needed)}"
        return form

    @property
    def amount_form(self) -> AmountForm:
        return AmountForm(
            self.study.quoted_cost if self.study else None,
            self.data if self.action in AMOUNT_NEEDED else None,
            auto_id="id_amount_%s",
            label_suffix="",
        )

    @property
    def bonus_form(self) -> BonusForm | None:
        given = self.data if self.action in BONUS_ACTIONS else None
        if self.study is None:
            return None
        return BonusForm(
            self.study,
            given,
            is_priced=self.action == PRICE_BONUS,
            initial=self._priced_bonus,
            auto_id="id_bonus_%s",
            label_suffix="",
        )

    @cached_property
    def _priced_bonus(self) -> dict[str, Any]:
        told = self.job.arguments if self.job and not self.is_under_way else {}
        if self.study is None or told.get("action") != PRICE_BONUS:
            return {}
        if Decimal(told["amount"]) != self.study.quoted_bonus:
            return {}
        return {name: told.get(name, "") for name in ("worker_id", "amount", "reason")}

    @property
    def is_bonus_open(self) -> bool:
        return self.action in BONUS_ACTIONS or bool(self._priced_bonus)

    @property
    def erasure_form(self) -> ParticipantForm:
        return ParticipantForm(
            self.data if self.action == ERASE else None, auto_id="id_erasure_%s", label_suffix=""
        )

    @property
    def refused_form(self) -> forms.Form | None:
        if self.data is None or self.problem:
            return None
        names = {"draft": "form", PRICE: "price_form", ERASE: "erasure_form"}
        names |= dict.fromkeys(AMOUNT_NEEDED, "amount_form")
        names |= dict.fromkeys(BONUS_ACTIONS, "bonus_form")
        form = getattr(self, names.get(self.action, ""), None)
        return form if form and form.errors else None

    @property
    def too_many(self) -> str:
        return too_many(self.n_wanted, self.n_needed)

    @property
    def is_extension_priced(self) -> bool:
        study, latest = self.study, self.job
        if study is None or study.state in (State.DRAFT, State.REQUESTED):
            return False
        if latest is None or latest.arguments.get("action") not in (PRICE, PLACES):
            return False
        return bool(study.quoted_cost and (study.quoted_places or 0) > study.places)

    @property
    def hourly(self) -> Decimal | None:
        if self.study is None:
            return None
        return (self.study.reward * 60 / self.study.minutes).quantize(CENT)

    @cached_property
    def n_wanted(self) -> int:
        return judgments_wanted(self.batch)

    @cached_property
    def n_needed(self) -> int:
        return places_wanted(self.batch, self.study.items) if self.study else 0

    @property
    def n_free(self) -> int:
        return self.study.n_free if self.study else 0

    @property
    def n_to_add(self) -> int:
        if self.study and self.study.needed is not None:  # the marketplace knows who is at work
            return max(0, self.study.needed - self.n_free)
        at_work = int(self.study.sessions.get("started", 0)) if self.study else 0
        return max(0, self.n_needed - at_work - self.n_free)

    @property
    def has_too_many(self) -> bool:
        is_draft = self.study is not None and self.study.state == State.DRAFT
        return bool(is_draft and self.study and self.study.places > self.n_needed)

    @property
    def is_in_vain(self) -> bool:
        study = self.study
        if study is None or not study.is_live or self.n_wanted:
            return False
        n_completed: int = study.outcomes.get("completed", 0)
        return study.places > n_completed

    @cached_property
    def rest(self) -> int:
        if self.study is None or self.study.state != State.DRAFT:
            return 0
        return self.n_wanted - self.study.items * (self.study.places - 1)

    @property
    def n_of_last(self) -> int:
        return self.rest if self.study and 0 < self.rest < self.study.items else 0

    @property
    def n_left_over(self) -> int:
        return max(0, self.rest - self.study.items) if self.study else 0

    @property
    def states(self) -> list[tuple[CodedText, int]]:
        return self._states_of(self.study) if self.study else []

    def _states_of(self, study: Recruitment) -> list[tuple[CodedText, int]]:
        name = study.recruiter.name
        unsent = {f"{state}_unsent": n for state, n in study.unsent.items()}
        counts = {**study.sessions, **unsent, "entered": study.n_entered}
        counts["started"] = counts.get("started", 0) - study.n_entered
        for state, n in study.unsent.items():
            counts[state] = counts.get(state, 0) - n
        labels = {
            "started": _("At work"),
            "entered": _("Handed in at %(name)s, the work not all here"),
            "finished": _("Finished, not decided"),
            "approved_unsent": _("Approved here, not at %(name)s yet"),
            "approved": _("Approved"),
            "rejected_unsent": _("Rejected here, not at %(name)s yet"),
            "rejected": _("Rejected"),
            "returned": _("Returned their place"),
            "timed_out": _("Ran out of time"),
            "screened_out": _("Screened out"),
        }
        return _counted(counts, {key: label % {"name": name} for key, label in labels.items()})

    @property
    def outcomes(self) -> list[tuple[CodedText, int]]:
        return _counted(self.study.outcomes if self.study else {}, OUTCOMES)

    @cached_property
    def bonuses(self) -> list[Bonus]:
        return bonuses_of(self.batch)[:MOST_BONUSES]

    @cached_property
    def calls(self) -> list[tuple[RecruiterCall, str]]:
        names = {
            "approve": _("Approval"),
            "reject": _("Rejection"),
            "bonus": _("Bonus"),
            "message": _("Message"),
            "doubt": _("Waits to be paid without work that counts"),
        }
        rows = (
            RecruiterCall.objects.to_look_after()
            .filter(recruitment__batch=self.batch)
            .order_by("-is_uncertain", "-number")
            if self.study
            else ()
        )
        # A doubt that waits for nobody any more.
        settled = names | {"doubt": _("Paid as screened out")}
        return [
            (call, (names if call.is_uncertain else settled).get(call.kind, call.kind))
            for call in rows
        ]


def _counted(counts: Mapping[str, int], labels: Mapping[str, Any]) -> list[tuple[CodedText, int]]:
    known = {key: counts.get(key, 0) for key in labels}
    return [(CodedText(str(labels[key]), key), n) for key, n in known.items() if n > 0]


def action_form(recruitment: Recruitment, action: str, data: Mapping[str, Any]) -> ActionForm:
    if action in AMOUNT_NEEDED:
        return AmountForm(recruitment.quoted_cost, data)
    if action in BONUS_ACTIONS:
        return BonusForm(recruitment, data, is_priced=action == PRICE_BONUS)
    if action == ERASE:
        return ParticipantForm(data)
    return PriceForm(data) if action == PRICE else ActionForm(data)


def action_values(recruitment: Recruitment, action: str, form: ActionForm) -> dict[str, Any]:
    values = {name: form.cleaned_data[name] for name in VALUES.get(action, ())}
    if action == PLACES:
        values["places"] = recruitment.quoted_places
    return {
        name: f"{each:f}" if isinstance(each, Decimal) else each for name, each in values.items()
    }
