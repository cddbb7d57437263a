from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.audit import record
from accounts.models import User
from accounts.roles import Permission
from accounts.teams import permissions_in_team
from annotation.models import CountedStudy, Study
from annotation.pages.stages import study_for, study_page
from console.access import person, require_spending
from console.forms import UsdField, problems_of
from console.models import PagePreferences
from hits.contacts import LONGEST_SUBJECT, LONGEST_TEXT
from hits.decisions import LONGEST_FEEDBACK
from hits.drafts import (
    SHORTEST_PARTICIPANTS_REASON,
    Action,
    PaidPart,
    Summary,
    draft_all,
    fast_assignments,
    frequent_workers,
    held_back,
    summary_of,
    unflagged_assignments,
)
from hits.exceptions import HitsError, require
from hits.models import Assignment, Batch, DraftDecision, RejectionReason
from hits.pages.desk import counted_reasons, name_of, notes_on
from hits.pages.evidence import devices_of

CONTROL = {"class": "form-control"}
DEFAULT_REASONS = (
    (
        gettext_lazy("Too fast"),
        gettext_lazy(
            "The work was handed in much faster than it can be read, and the answers do not fit "
            "what is on the page."
        ),
    ),
    (
        gettext_lazy("One answer throughout"),
        gettext_lazy(
            "The same answer was given to everything on the page, also where others' answers "
            "differ widely."
        ),
    ),
    (
        gettext_lazy("Reason missing"),
        gettext_lazy(
            "The reason that the instructions ask for is missing, or is about something else."
        ),
    ),
)
# A participant has no page to appeal on: the recruiter passes on what they write.
APPEAL = gettext_lazy("If we are mistaken, please appeal: we will look again.")
WRITE = gettext_lazy("If we are mistaken, please write to us: we will look again.")


def reasons_of(study: Study, *, is_participant: bool = False) -> list[tuple[str, str]]:
    own = RejectionReason.objects.filter(team=study.team_id) if study.team_id else []
    rows = [(reason.title, reason.text) for reason in own]
    closing = WRITE if is_participant else APPEAL
    return rows or [(str(title), f"{text} {closing}") for title, text in DEFAULT_REASONS]


class DecisionTextForm(forms.Form):
    def __init__(
        self,
        action: str,
        *args: Any,
        part: PaidPart | None = None,
        is_participant: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.action = action
        if action == Action.MESSAGE:
            self.fields["subject"] = forms.CharField(
                label=_("Subject"), max_length=LONGEST_SUBJECT, widget=forms.TextInput(CONTROL)
            )
        if action in (Action.PART_PAY, Action.BONUS):
            self.fields["amount_usd"] = UsdField(
                label=_("Amount, US dollars"),
                widget=forms.NumberInput(CONTROL | {"step": "0.01", "min": "0.01"}),
            )
        if action == Action.OVERRIDE and part is not None:
            self.fields["amount_usd"] = UsdField(
                label=_(
                    "${part} of the reward was paid already, and this adds the whole: type "
                    "${total} to confirm it"
                ).format(part=part.amount_usd, total=part.with_reward_usd),
                widget=forms.TextInput(CONTROL | {"inputmode": "decimal", "autocomplete": "off"}),
            )
        labels = {
            **dict.fromkeys(
                (Action.REJECT, Action.PART_PAY, Action.BONUS), _("Reason, for the annotator")
            ),
            Action.MESSAGE: _("Message"),
            Action.BLOCK: _("Reason, for the team and the marketplace"),
            Action.OVERRIDE: _("Feedback for the annotator (optional)"),
        }
        is_feedback = action in (Action.REJECT, Action.PART_PAY, Action.OVERRIDE)
        self.fields["text"] = forms.CharField(
            label=labels.get(Action(action), _("Why (optional)")),
            required=action not in (Action.OVERRIDE, Action.UNBLOCK, Action.APPROVE),
            max_length=LONGEST_FEEDBACK if is_feedback else LONGEST_TEXT,
            widget=forms.Textarea(CONTROL | {"rows": 3}),
        )
        if action == Action.REJECT and is_participant:
            self.fields["text"].label = _(
                "Reason, which the participant reads: at least {n} characters. All of the "
                "participant’s items are rejected by it"
            ).format(n=SHORTEST_PARTICIPANTS_REASON)
        next(iter(self.fields.values())).widget.attrs["autofocus"] = True


YEAR_HOURS = 366 * 24


class ApproveRuleForm(forms.Form):
    hours = forms.FloatField(
        label=gettext_lazy("Waiting for at least, hours"),
        min_value=0,
        max_value=YEAR_HOURS,
        initial=24,
        widget=forms.NumberInput(CONTROL | {"min": "0", "step": "any"}),
    )


class RejectRuleForm(forms.Form):
    divisor = forms.FloatField(
        label=gettext_lazy("Faster than the median time divided by"),
        min_value=2,
        max_value=1000,
        initial=6,
        widget=forms.NumberInput(CONTROL | {"min": "2", "step": "any"}),
    )
    text = forms.CharField(
        label=gettext_lazy("Reason, for the annotator"),
        max_length=LONGEST_FEEDBACK,
        widget=forms.Textarea(CONTROL | {"rows": 3}),
    )


class BonusRuleForm(forms.Form):
    least_approved = forms.IntegerField(
        label=gettext_lazy("Approved assignments, at least"),
        min_value=1,
        max_value=1_000_000,
        initial=10,
        widget=forms.NumberInput(CONTROL | {"min": "1"}),
    )
    amount_usd = UsdField(
        label=gettext_lazy("Amount for each annotator, US dollars"),
        widget=forms.NumberInput(CONTROL | {"step": "0.01", "min": "0.01"}),
    )
    text = forms.CharField(
        label=gettext_lazy("Reason, for the annotator"),
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(CONTROL | {"rows": 3}),
    )


class ReasonForm(forms.ModelForm[RejectionReason]):
    class Meta:
        model = RejectionReason
        fields = ("title", "text")
        widgets = {
            "title": forms.TextInput(CONTROL),
            "text": forms.Textarea(CONTROL | {"rows": 3}),
        }


class NoteForm(forms.Form):
    note = forms.CharField(
        label=gettext_lazy("Note, for the team alone"),
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(CONTROL | {"rows": 2}),
    )


class SendForm(forms.Form):
    digest = forms.CharField(widget=forms.HiddenInput)
    typed_usd = UsdField(
        label=gettext_lazy("Type the amount that is spent elsewhere, in US dollars"),
        required=False,
        max_digits=10,
        widget=forms.TextInput(CONTROL | {"inputmode": "decimal", "autocomplete": "off"}),
    )


MOST_ASSIGNMENTS = 100_000


@dataclass(frozen=True)
class Rule:
    title: str | Promise
    form: type[forms.Form]
    action: Action
    explanation: str | Promise = ""


RULES = {
    "approve-unflagged": Rule(
        gettext_lazy("Approve what has no flag"),
        ApproveRuleForm,
        Action.APPROVE,
        gettext_lazy(
            "It leaves to you what was flagged by hand, failed a check, was too fast, has times "
            "that contradict each other, ratings much alike or far from others’, or a pasted "
            "reason; all work of a flagged annotator; and what was not read or not measured. "
            "“Same device” and “amended” hold nothing back: such work is taken if nothing else "
            "speaks against it."
        ),
    ),
    "reject-fast": Rule(gettext_lazy("Reject what was too fast"), RejectRuleForm, Action.REJECT),
    "bonus-workers": Rule(
        gettext_lazy("A bonus for annotators with many approved assignments"),
        BonusRuleForm,
        Action.BONUS,
    ),
}


@dataclass(frozen=True)
class RulePreview:
    assignments: Sequence[Assignment]
    summary: Summary
    left: Sequence[Assignment] = ()


def rule_preview(study: Study, name: str, values: dict[str, Any]) -> RulePreview:
    assignments, action = _assignments_of(study, name, values), RULES[name].action
    drafts = [
        DraftDecision(
            pk=number, assignment=assignment, action=action, amount_usd=values.get("amount_usd")
        )
        for number, assignment in enumerate(assignments)
    ]
    return RulePreview(
        assignments,
        summary_of(drafts),
        held_back(study, hours=values["hours"]) if name == "approve-unflagged" else [],
    )


def _assignments_of(study: Study, name: str, values: dict[str, Any]) -> list[Assignment]:
    if name == "approve-unflagged":
        return unflagged_assignments(study, hours=values["hours"])
    if name == "reject-fast":
        return fast_assignments(study, divisor=values["divisor"])
    return frequent_workers(study, least_approved=values["least_approved"], reason=values["text"])


@transaction.atomic
def draft_by(
    name: str,
    *,
    reviewer: User,
    study: Study,
    keys: Sequence[int],
    values: dict[str, Any],
) -> list[DraftDecision]:
    listed = set(keys[:MOST_ASSIGNMENTS])
    return draft_all(
        reviewer=reviewer,
        assignments=[one for one in _assignments_of(study, name, values) if one.pk in listed],
        action=RULES[name].action,
        text=values.get("text", ""),
        amount_usd=values.get("amount_usd"),
    )


@require_safe
def rules(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review. With a rule's numbers, the assignments that it takes."""
    study = study_for(request, slug, Permission.REVIEW)
    name = request.GET.get("rule", "")
    rule = RULES.get(name)
    context: dict[str, Any] = {"section": "review", "rules": RULES, "name": name, "rule": rule}
    if rule is not None:
        has_numbers = len(request.GET) > 1
        initial = {}
        if rule.action == Action.REJECT:
            initial = {
                "text": reasons_of(
                    study, is_participant=Batch.objects.of(study).filter(is_recruited=True).exists()
                )[0][1]
            }
        form = rule.form(request.GET if has_numbers else None, initial=initial, label_suffix="")
        context["form"] = form
        if has_numbers and form.is_valid():
            context |= _preview(request, study, name, form.cleaned_data)
            # The same fields again, which must not bear the same ids.
            context["hidden_form"] = rule.form(request.GET, auto_id=False)
    return study_page(request, study, "hits/review_rules", context)


def _preview(
    request: HttpRequest, study: Study, name: str, values: dict[str, Any]
) -> dict[str, Any]:
    preview = rule_preview(study, name, values)
    devices = devices_of(study)
    rows = [
        {
            "assignment": one,
            "name": name_of(one),
            "flags": notes_on(one, devices),
            "measures": getattr(one.submission, "evidence", None),
        }
        for one in preview.assignments
    ]
    keys = ",".join(str(one.pk) for one in preview.assignments)
    left = {"n_left": len(preview.left), "left": counted_reasons(preview.left)}
    is_recruited = any(one.hit.batch.is_recruited for one in preview.assignments)
    of_participants = {"is_of_participants": is_recruited and not preview.summary.total_usd}
    summed = {"rows": rows, "summary": preview.summary, "keys": keys, "is_previewed": True}
    return left | of_participants | summed


@require_POST
def draft_by_rule(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review; what costs money, those who may spend."""
    study = study_for(request, slug, Permission.REVIEW)
    name = request.POST.get("rule", "")
    rule = RULES.get(name)
    if rule is None:
        messages.error(request, _("Nothing was decided: choose a rule."))
        return redirect("console:review-rules", slug)
    if rule.action == Action.BONUS:
        require_spending(request)
    form = rule.form(request.POST)
    if form.is_valid() and _is_drafted(request, study, name, form.cleaned_data):
        return redirect("console:review-send", slug)
    if form.errors:
        messages.error(request, problems_of(form))
    return redirect("console:review-rules", slug)


def _is_drafted(request: HttpRequest, study: Study, name: str, values: dict[str, Any]) -> bool:
    reviewer, listed = person(request), request.POST.get("keys", "").split(",")
    keys = [int(key) for key in listed if key.isdecimal() and len(key) < 19]
    try:
        drafts = draft_by(name, reviewer=reviewer, study=study, keys=keys, values=values)
    except HitsError as refused:
        messages.error(request, _("Nothing was decided. {why}").format(why=refused))
        return False
    messages.success(request, _("{n} decided, not sent yet.").format(n=len(drafts)))
    return True


@require_safe
def reasons(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review."""
    return _reasons_page(
        request, study_for(request, slug, Permission.REVIEW), ReasonForm(label_suffix="")
    )


def _reasons_page(request: HttpRequest, study: CountedStudy, form: ReasonForm) -> HttpResponse:
    return study_page(
        request,
        study,
        "hits/review_reasons",
        {
            "section": "review",
            "form": form,
            "own": RejectionReason.objects.filter(team=study.team_id) if study.team_id else [],
            "reasons": reasons_of(study),
            "may_delete": _reviews_for_team(request, study),
        },
    )


def _reviews_for_team(request: HttpRequest, study: Study) -> bool:
    if study.team is None:
        return False
    return Permission.REVIEW in permissions_in_team(study.team, person(request))


@require_POST
def add_reason(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may review, in a study of a team."""
    study = study_for(request, slug, Permission.REVIEW)
    form = ReasonForm(request.POST, label_suffix="")
    if _is_stored(request, study, form):
        return redirect("console:review-reasons", slug)
    return _reasons_page(request, study, form)


def _is_stored(request: HttpRequest, study: Study, form: ReasonForm) -> bool:
    if study.team is None:
        messages.error(request, _("Templates are a team's; this study has none."))
        return True
    if not form.is_valid():
        return False
    try:
        with transaction.atomic():
            form.instance.team = study.team
            record(
                team=study.team,
                actor=person(request),
                action="reason.set",
                subject=form.save().title,
            )
    except IntegrityError:
        form.add_error("title", _("There is a template of this name already; delete it first."))
        return False
    messages.success(request, _("The template is stored."), extra_tags="reason_stored")
    return True


@require_POST
def delete_reason(request: HttpRequest, slug: str, reason_id: int) -> HttpResponse:
    """Access: those who may review for the template's team, not in this study alone."""
    study = study_for(request, slug, Permission.REVIEW)
    rows = RejectionReason.objects.filter(team=study.team_id) if study.team_id else None
    reason = get_object_or_404(rows or RejectionReason.objects.none(), pk=reason_id)
    require(
        _reviews_for_team(request, study),
        PermissionDenied(_("The template is the team's; one of its reviewers can delete it.")),
    )
    with transaction.atomic():
        title = reason.title
        reason.delete()
        record(team=study.team, actor=person(request), action="reason.delete", subject=title)
    messages.success(request, _("The template is deleted."))
    return redirect("console:review-reasons", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def letter_keys(request: HttpRequest) -> HttpResponse:
    """Access: everyone signed in, for themselves."""
    if request.method == "POST":
        is_on = request.POST.get("letter_keys") == "on"
        PagePreferences.objects.update_or_create(
            user=person(request), defaults={"has_letter_keys": is_on}
        )
        messages.success(
            request,
            _("Letter keys are on.") if is_on else _("Letter keys are off."),
            extra_tags="letter_keys_on" if is_on else "letter_keys_off",
        )
        return redirect("console:letter-keys")
    is_off = PagePreferences.objects.filter(user=person(request), has_letter_keys=False).exists()
    return render(request, "hits/letter_keys.html", {"is_on": not is_off})
