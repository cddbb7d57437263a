"""What a comparison of qrels is called in sentences and tables."""

from __future__ import annotations

from django.utils.translation import gettext as _

from console.collections.result_view import in_words
from retrieval.models import AnyTwoAssessors


def any_two_sentence(one: AnyTwoAssessors) -> str:
    """How far assessors agree whoever they are."""
    overlap, alpha = (
        _("undefined") if value is None else in_words(value, low, high)
        for value, low, high in (
            (one.overlap, one.overlap_low, one.overlap_high),
            (one.alpha, one.alpha_low, one.alpha_high),
        )
    )
    return _(
        "Any two of the {n} assessors, on a document that both judged: overlap {overlap}, "
        "Krippendorff's alpha {alpha}."
    ).format(n=one.n_assessors, overlap=overlap, alpha=alpha)


def change_name(change: str) -> str:
    """What becomes of a difference, in words."""
    return {
        "kept": _("significant under both"),
        "lost": _("significance lost"),
        "gained": _("significance gained"),
        "reversed": _("significant the other way"),
        "neither": _("significant under neither"),
    }[change]


def kind_name(kind: str) -> str:
    """Whence qrels come, in words."""
    return {
        "given": _("people"),
        "machine": _("a machine"),
        "assessor": _("an assessor"),
        "derived": _("derived"),
    }[kind]
