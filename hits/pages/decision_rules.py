"""Deciding by rule: which assignments a rule takes, what that costs, and drafting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from hits.draft_costs import Summary, summary_of
from hits.drafts import Action
from hits.models import Assignment, DraftDecision
from hits.pages.review_forms import (
    ApproveRuleForm,
    BonusRuleForm,
    RejectRuleForm,
)
from hits.review_rules import (
    draft_all,
    fast_assignments,
    frequent_workers,
    held_back,
    unflagged_assignments,
)

if TYPE_CHECKING:
    from accounts.models import User
    from annotation.models import Study

MOST_ASSIGNMENTS = 100_000


@dataclass(frozen=True)
class Rule:
    """A rule with the form of its numbers, what it decides, and what it takes in words."""

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
            "reason; all work of a worker who is flagged; and what was not read or not measured. "
            "“Same device” and “amended” hold nothing back: such work is taken if nothing else "
            "speaks against it."
        ),
    ),
    "reject-fast": Rule(gettext_lazy("Reject what was too fast"), RejectRuleForm, Action.REJECT),
    "bonus-workers": Rule(
        gettext_lazy("A bonus for workers with many approved assignments"),
        BonusRuleForm,
        Action.BONUS,
    ),
}


@dataclass(frozen=True)
class RulePreview:
    """The assignments that a rule takes, what deciding so on them comes to, and the assignments
    that wait as long and are left to a person."""

    assignments: Sequence[Assignment]
    summary: Summary
    left: Sequence[Assignment] = ()


def rule_preview(study: Study, name: str, values: dict[str, Any]) -> RulePreview:
    """What a rule would decide, with the numbers of its form."""
    assignments, action = _assignments_of(study, name, values), RULES[name].action
    drafts = [
        DraftDecision(
            pk=number, assignment=assignment, action=action, amount_usd=values.get("amount_usd")
        )
        for number, assignment in enumerate(assignments)
    ]
    left = held_back(study, hours=values["hours"]) if name == "approve-unflagged" else []
    return RulePreview(assignments, summary_of(drafts), left)


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
    """Draft for what a preview listed, except what the rule does not take any more."""
    listed = set(keys[:MOST_ASSIGNMENTS])
    assignments = [one for one in _assignments_of(study, name, values) if one.pk in listed]
    rule = RULES[name]
    return draft_all(
        reviewer=reviewer,
        assignments=assignments,
        action=rule.action,
        text=values.get("text", ""),
        amount_usd=values.get("amount_usd"),
    )
