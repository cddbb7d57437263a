"""What the protocols to begin with are called on pages, and what each is for."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

TEMPLATES: dict[str, tuple[str | Promise, str | Promise]] = {
    "alternatives": (
        _("Ticks among alternatives, with reasons"),
        _("Which of several products would do instead of a target, ticked, and why."),
    ),
    "best_worst": (
        _("Best and worst"),
        _("Of the responses to one context the best and the worst: an order with few answers."),
    ),
    "e2e_ratings": (
        _("Ratings of naturalness and quality (E2E)"),
        _("Texts written from facts, each rated for quality and naturalness in six steps."),
    ),
    "graded_relevance": (
        _("Relevance of results, four grades or can't judge"),
        _("How relevant each search result is to what was looked for: qrels with grades."),
    ),
    "likert_agreement": (
        _("Agreement with statements (Likert)"),
        _("How far one agrees with statements about each response, such as that it makes sense."),
    ),
    "outcomes": (
        _("Ticks among what dialogues ended with"),
        _("Which products that dialogues with an assistant ended with would do for the target."),
    ),
    "practised_ratings": (
        _("Ratings of appropriateness, with practice first"),
        _(
            "How appropriate each response is; workers practise first, are told what is right, and "
            "are paid for it."
        ),
    ),
    "preference": (
        _("Which one is better"),
        _("Two responses side by side, and which of them is better."),
    ),
    "style_ratings": (
        _("Ratings of appropriateness and style (LMStyle)"),
        _("How appropriate each response is, and how far it is in the style of its condition."),
    ),
    "switching": (
        _("Keep, take another or leave"),
        _("Whether somebody shown another product keeps to the target, takes it, or leaves."),
    ),
}
"""A title and a purpose by the name of the template."""


def title_of(name: str) -> str:
    return str(TEMPLATES[name][0]) if name in TEMPLATES else name


def purpose_of(name: str) -> str:
    return str(TEMPLATES[name][1]) if name in TEMPLATES else ""
