from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.models import User
from annotation.models import Submission
from annotation.study_facts import ANSWER_BY_CROWD, request_study_job
from console.forms import UsdField
from hits.changes import (
    NOTHING_MORE,
    add_assignments,
    end_batch,
    extend_batch,
    missing_assignments,
    price_of_extension,
    price_of_more,
    repost_missing,
)
from hits.costs import Estimate
from hits.crowd.simulated import (
    allow_crowd,
    crowd_size,
    may_simulate,
    require_possible,
    shares_words,
)
from hits.exceptions import ChangeUnfit, require
from hits.jobs import APPLY_CHANGES
from hits.models import Assignment, Batch, Hit, Recruitment
from work.models import Job


@dataclass(frozen=True)
class Preview:
    sentences: tuple[str, ...]
    cost: Estimate = NOTHING_MORE


class MoreForm(forms.Form):
    n_more = forms.IntegerField(
        label=gettext_lazy("More assignments of each HIT"),
        min_value=1,
        max_value=1000,
        initial=1,
        widget=forms.NumberInput(attrs={"class": "form-control"}),
    )


class ExpiryForm(forms.Form):
    expires_at = forms.DateTimeField(
        label=gettext_lazy("Open until (UTC)"),
        widget=forms.DateTimeInput(
            format="%Y-%m-%dT%H:%M", attrs={"type": "datetime-local", "class": "form-control"}
        ),
    )


class ConfirmationForm(forms.Form):
    n_added = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    expected_assignments = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    expected_usd = UsdField(max_digits=12, widget=forms.HiddenInput)
    typed_usd = forms.CharField(
        label=gettext_lazy("Type the amount to confirm"),
        widget=forms.TextInput(attrs={"class": "form-control", "inputmode": "decimal"}),
    )

    def __init__(self, *args: Any, is_typed: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | {"label_suffix": ""})
        if not is_typed:
            del self.fields["typed_usd"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        amount = data.get("typed_usd")
        if amount is not None and amount.strip().lstrip("$") != f"{data.get('expected_usd')}":
            self.add_error("typed_usd", _("This is not the amount above."))
        return data

    @property
    def expected(self) -> Estimate:
        return Estimate(
            0,
            self.cleaned_data["expected_assignments"],
            self.cleaned_data["expected_usd"],
            Decimal(0),
        )


@dataclass(frozen=True)
class Change:
    title: Promise
    button: Promise
    form: type[forms.Form]
    preview: Callable[[Batch, dict[str, Any]], Preview]
    perform: Callable[[Batch, dict[str, Any], Estimate, User], None]
    job: str = APPLY_CHANGES


def initial_values(batch: Batch) -> dict[str, Any]:
    later = max(batch.offered_until, timezone.now()) + timedelta(days=7)
    return {"expires_at": later.replace(second=0, microsecond=0)}


def _preview_more(batch: Batch, values: dict[str, Any]) -> Preview:
    cost = price_of_more(batch, values["n_more"])
    sentences = [
        ngettext(
            "%(n)d more assignment, of %(hits)d HITs, can be accepted by other workers.",
            "%(n)d more assignments, of %(hits)d HITs, can be accepted by other workers.",
            cost.n_assignments,
        )
        % {"n": cost.n_assignments, "hits": cost.n_hits}
    ]
    if batch.offered_until <= timezone.now():
        sentences.append(_("The batch has expired: extend it too, or nobody can accept them."))
    return Preview(tuple(sentences), cost)


def _preview_repost(batch: Batch, values: dict[str, Any]) -> Preview:
    gap = missing_assignments(batch)
    require(
        gap.hits,
        ChangeUnfit(_("Nothing is missing: every item has the judgments it was meant to.")),
    )
    sentence = ngettext(
        "%(n)d missing assignment, of %(hits)d HITs, is offered again until %(at)s UTC.",
        "%(n)d missing assignments, of %(hits)d HITs, are offered again until %(at)s UTC.",
        gap.n_assignments,
    )
    counts = {"n": gap.n_assignments, "hits": len(gap.hits)}
    sentences = [sentence % (counts | {"at": _time_text(values["expires_at"])})]
    n_others = gap.cost.n_assignments - gap.n_assignments
    if n_others > 0:
        sentences.append(_reopening_sentence(replace(gap.cost, n_assignments=n_others)))
    return Preview(tuple(sentences), gap.cost)


def _preview_extension(batch: Batch, values: dict[str, Any]) -> Preview:
    cost = price_of_extension(batch)
    times = {"at": _time_text(values["expires_at"]), "present": _time_text(batch.offered_until)}
    sentence = _("HITs can be accepted until %(at)s UTC instead of %(present)s UTC.") % times
    return Preview((sentence, _reopening_sentence(cost)), cost)


def _reopening_sentence(cost: Estimate) -> str:
    if not cost.n_assignments:
        return _("It costs nothing beyond what the open assignments were meant to cost.")
    return ngettext(
        "%(n)d assignment that nobody took is on offer again, at what it was meant to cost.",
        "%(n)d assignments that nobody took are on offer again, at what they were meant to cost.",
        cost.n_assignments,
    ) % {"n": cost.n_assignments}


def _preview_expiry(batch: Batch, values: dict[str, Any]) -> Preview:
    sentences = [
        _("Nobody can accept a HIT of this batch from now on."),
        _("Whoever has accepted one can still submit it, and is to be paid."),
    ]
    if not batch.is_recruited:
        sentences.append(_("The money held for assignments that nobody took is released."))
    elif Recruitment.objects.filter(batch=batch).live().exists():
        sentences.append(
            _("The study stays open at the recruiter: stop it first, or people come in vain.")
        )
    return Preview(tuple(sentences))


def _preview_closing(batch: Batch, values: dict[str, Any]) -> Preview:
    sentences = [*_preview_expiry(batch, values).sentences]
    if n := Hit.objects.of(batch).unpublished().count():
        sentences.append(
            ngettext(
                "%(n)d HIT that is not published yet never will be.",
                "%(n)d HITs that are not published yet never will be.",
                n,
            )
            % {"n": n}
        )
    if n := Assignment.objects.of(batch).undecided().count():
        sentences.append(
            ngettext(
                "%(n)d submission still waits for review.",
                "%(n)d submissions still wait for review.",
                n,
            )
            % {"n": n}
        )
    sentences.append(_("A closed batch cannot be opened again; launch another one for more."))
    return Preview(tuple(sentences))


def _preview_crowd(batch: Batch, values: dict[str, Any]) -> Preview:
    require_possible(batch)
    n_workers = crowd_size(batch)
    sentences = [
        ngettext(
            "%(n)d simulated worker signs up at the worker site, and answers what is open of this "
            "batch on the pages that people work on.",
            "%(n)d simulated workers sign up at the worker site, and answer what is open of this "
            "batch on the pages that people work on.",
            n_workers,
        )
        % {"n": n_workers},
        _(
            "They rate by the words that a candidate shares with its reference, each with a bias "
            "and noise of their own: what comes of it is nobody's opinion."
        )
        if shares_words(batch.study)
        else _(
            "No candidate shares words with a reference. They rate by the similarity of texts or "
            "pictures, or at random if there is none."
        ),
        _(
            "Their answers are marked as simulated for good, and paid as a person's would be, with "
            "what the launch has set aside."
        ),
    ]
    if n := Submission.objects.of(batch.study).filter(is_simulated=False).count():
        sentences.append(
            ngettext(
                "%(n)d answer of this study is a person's: results would be of both.",
                "%(n)d answers of this study are people's: results would be of both.",
                n,
            )
            % {"n": n}
        )
    return Preview(tuple(sentences))


def _time_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


CHANGES = {
    "more": Change(
        gettext_lazy("Add assignments"),
        gettext_lazy("Add them"),
        MoreForm,
        _preview_more,
        lambda batch, values, expected, actor: add_assignments(
            batch=batch,
            n_more=values["n_more"],
            n_added=values["n_added"],
            expected=expected,
            actor=actor,
        ),
    ),
    "repost": Change(
        gettext_lazy("Offer what is missing again"),
        gettext_lazy("Offer again"),
        ExpiryForm,
        _preview_repost,
        lambda batch, values, expected, actor: repost_missing(
            batch=batch, expires_at=values["expires_at"], expected=expected, actor=actor
        ),
    ),
    "extend": Change(
        gettext_lazy("Extend"),
        gettext_lazy("Extend"),
        ExpiryForm,
        _preview_extension,
        lambda batch, values, expected, actor: extend_batch(
            batch=batch, expires_at=values["expires_at"], expected=expected, actor=actor
        ),
    ),
    "expire": Change(
        gettext_lazy("Expire now"),
        gettext_lazy("Expire now"),
        forms.Form,
        _preview_expiry,
        lambda batch, values, expected, actor: end_batch(batch=batch, actor=actor),
    ),
    "close": Change(
        gettext_lazy("Close the batch"),
        gettext_lazy("Close the batch"),
        forms.Form,
        _preview_closing,
        lambda batch, values, expected, actor: end_batch(batch=batch, actor=actor, is_closed=True),
    ),
    "crowd": Change(
        gettext_lazy("Have a simulated crowd answer"),
        gettext_lazy("Have them answer"),
        forms.Form,
        _preview_crowd,
        lambda batch, values, expected, actor: allow_crowd(batch=batch, actor=actor),
        job=ANSWER_BY_CROWD,
    ),
}


def changes_offered(batch: Batch) -> dict[str, Change]:
    if batch.closed_at:
        return {}
    left_out = () if may_simulate(batch) else ("crowd",)
    return {name: change for name, change in CHANGES.items() if name not in left_out}


def needs_amount(batch: Batch, preview: Preview) -> bool:
    # An amount that leaves this site must be typed.
    return preview.cost.total_usd > 0 and not batch.connection.is_on_this_site


def displayed(batch: Batch, preview: Preview) -> dict[str, Any]:
    return {
        "n_added": batch.n_added,
        "expected_assignments": preview.cost.n_assignments,
        "expected_usd": f"{preview.cost.total_usd:.2f}",
    }


def make_change(
    *,
    batch: Batch,
    change: Change,
    values: dict[str, Any],
    confirmation: ConfirmationForm,
    actor: User,
) -> Job:
    change.perform(
        batch,
        values | {"n_added": confirmation.cleaned_data["n_added"]},
        confirmation.expected,
        actor,
    )
    return request_study_job(
        study=batch.study, kind=change.job, arguments={"batch": batch.pk}, requested_by=actor
    )
