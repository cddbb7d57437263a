"""What a comparison of qrels says, in sentences and in the names of its tables."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.collections.result_view import in_words
from error_codes import CodedText
from retrieval.models import AnyTwoAssessors, RankingCoefficient, RankingPair


def pair_sentence(pair: RankingPair, tau: RankingCoefficient) -> str:
    """How alike the rankings under two qrels are, and what becomes of decided differences."""
    likeness = _("{first} and {second}: tau-b {tau} over {runs} runs and {topics} topics;").format(
        first=_("“{name}”").format(name=pair.first),
        second=_("“{name}”").format(name=pair.second),
        tau=in_words(tau.value, tau.ci_low, tau.ci_high)
        if tau.value is not None
        else _("undefined"),
        runs=tau.n_systems,
        topics=f"{tau.n_topics:,}",
    )
    swaps = ngettext(
        "%(n)d of %(all)d pairs of runs swaps, %(significant)d where a test had decided.",
        "%(n)d of %(all)d pairs of runs swap, %(significant)d where a test had decided.",
        pair.n_swapped,
    ) % {
        "n": pair.n_swapped,
        "all": pair.n_pairs,
        "significant": pair.n_swapped_significantly,
    }
    if tau.value is not None and tau.ci_low is None and tau.reason:
        text = _("tau-b has no interval: {reason}.").format(reason=_(tau.reason))
        return CodedText(f"{likeness} {swaps} {_decisions_sentence(pair)} {text}", code="pair")
    return CodedText(f"{likeness} {swaps} {_decisions_sentence(pair)}", code="pair")


def _decisions_sentence(pair: RankingPair) -> str:
    """What becomes of the differences that a test decided under the first of two qrels."""
    n_decided = pair.n_kept + pair.n_lost + pair.n_reversed
    if not n_decided:
        return _("No test decided any difference under the first.")
    return ngettext(
        "Of %(n)d difference that a test decided under the first, %(kept)d is decided the same way "
        "under the second.",
        "Of %(n)d differences that a test decided under the first, %(kept)d are decided the same "
        "way under the second.",
        n_decided,
    ) % {"n": n_decided, "kept": pair.n_kept}


def any_two_sentence(one: AnyTwoAssessors) -> str:
    """How far assessors agree whoever they are."""
    overlap, alpha = (
        _("undefined") if value is None else in_words(value, low, high)
        for value, low, high in (
            (one.overlap, one.overlap_low, one.overlap_high),
            (one.alpha, one.alpha_low, one.alpha_high),
        )
    )
    return CodedText(
        _(
            "Any two of the {n} assessors, on a document that both judged: overlap {overlap}, "
            "Krippendorff's alpha {alpha}."
        ).format(n=one.n_assessors, overlap=overlap, alpha=alpha),
        code="any_two_assessors",
    )


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
