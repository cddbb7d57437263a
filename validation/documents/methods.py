from collections.abc import Callable, Iterator
from dataclasses import fields

from django.utils.translation import gettext as _, gettext_noop, ngettext

from error_codes import CodedText
from presentation.numbers import join_names
from stats.correlation.result import FEW_UNITS, LEAST_SYSTEMS_FOR_INTERVAL
from stats.significance.resampled import LEAST_SYSTEMS_FOR_P
from validation.analysis.records import Inputs
from validation.analysis.settings import Settings
from validation.documents.terms import (
    CHOICES,
    COEFFICIENTS,
    LEVEL_DESCRIPTIONS,
    LEVELS,
    RESAMPLES,
    TESTS,
    family,
    percent_text,
)


def methods_paragraph(settings: Settings, inputs: Inputs) -> str:
    """Names every setting; a value without words of its own is shown as it is."""
    return " ".join(methods_sentences(settings, inputs))


def methods_sentences(settings: Settings, inputs: Inputs) -> Iterator[CodedText]:
    sentences = {
        "material": _material(inputs),
        "labels": _labels(settings, inputs),
        "family": _family(settings, inputs),
        **{sentence.__name__.strip("_"): sentence(settings) for sentence in SENTENCES},
    }
    for code, text in sentences.items():
        if text:
            yield CodedText(text, code=getattr(text, "code", code))
    unnamed = [field.name for field in fields(settings) if field.name not in NAMED]
    if unnamed:
        rest = "; ".join(f"{name} = {getattr(settings, name)}" for name in unnamed)
        text = _("Further settings: %(settings)s.") % {"settings": rest}
        yield CodedText(text, code="further_settings")


def _material(inputs: Inputs) -> str:
    n_metrics = len(inputs.score_sets)
    return _(
        "%(n_counted)s of %(n_judgments)s judgments by %(n_annotators)s annotators, "
        "of %(n_candidates)s candidates in %(n_items)s items, were set against "
        "%(scores)s."
    ) % {
        "n_counted": f"{inputs.n_counted:,}",
        "n_judgments": f"{inputs.n_judgments:,}",
        "n_annotators": f"{inputs.n_annotators:,}",
        "n_candidates": f"{inputs.n_candidates:,}",
        "n_items": f"{inputs.n_items:,}",
        "scores": ngettext("one set of scores", "%(n)d sets of scores", n_metrics)
        % {"n": n_metrics},
    }


def _labels(settings: Settings, inputs: Inputs) -> str:
    if not settings.labels:
        return ""
    named = [
        _(
            "of %(question)s labels %(version)s (%(n_labels)s labels, %(n_adjudicated)s "
            "of them adjudicated; %(signature)s)"
        )
        % {
            "question": one.question,
            "version": one.version,
            "n_labels": f"{one.n_labels:,}",
            "n_adjudicated": f"{one.n_adjudicated:,}",
            "signature": one.signature,
        }
        for one in inputs.labels
    ]
    return _("Human values are labels, not made of judgments here: %(labels)s.") % {
        "labels": join_names(named) or join_names([str(version) for version in settings.labels])
    }


def _family(settings: Settings, inputs: Inputs) -> str:
    return _("%(family)s (%(metrics)s; %(chosen)s).") % {
        "family": family(inputs).removesuffix("."),
        "metrics": join_names([one.metric for one in inputs.primary])
        or join_names(list(settings.primary)),
        "chosen": _("chosen by name") if settings.primary else _("as their scorers declare"),
    }


def _judgments(settings: Settings) -> str:
    rejected = {"accepted": _("rejected ones left out"), "all": _("rejected ones counted too")}
    which = rejected.get(settings.judgments, settings.judgments)
    how = {
        "raw": _("as given"),
        "zscore": _("turned into standard deviations from the mean of each annotator's own"),
    }.get(settings.ratings, settings.ratings)
    rule = CHOICES.get(settings.aggregation, settings.aggregation)
    of_version = ""
    if settings.protocol is not None:
        of_version = " " + _("Only those under version %(version)s of the protocol count.") % {
            "version": settings.protocol
        }
    text = _(
        "Judgments are of round %(round)s, %(which)s, %(how)s; a candidate's human "
        "value is the %(rule)s over annotators."
    ) % {"round": settings.round, "which": which, "how": how, "rule": rule}
    return text + of_version


def _levels(settings: Settings) -> str:
    names = [COEFFICIENTS.get(name, name) for name in settings.coefficients]
    return _("Agreement is %(coefficients)s, computed %(levels)s.") % {
        "coefficients": join_names(names),
        "levels": join_names([LEVEL_DESCRIPTIONS.get(level, level) for level in settings.levels]),
    }


def _undefined(settings: Settings) -> str:
    what = CHOICES.get(settings.undefined, settings.undefined)
    unparsed = {"drop": _("left out, and counted"), "zero": _("taken for 0")}
    unread = unparsed.get(settings.unparsed, settings.unparsed)
    if settings.undefined == "nan":
        text = _(
            "Groups in which annotators or the metric gave all candidates the same value %(what)s; "
            "scores whose source could not be read are %(unread)s."
        )
    else:
        text = _(
            "Groups in which annotators or the metric gave all candidates the same value are "
            "%(what)s; scores whose source could not be read are %(unread)s."
        )
    return text % {"what": what, "unread": unread}


def _intervals(settings: Settings) -> str:
    drawn = RESAMPLES.get(settings.resample, settings.resample)
    if not settings.n_resamples:
        return _(
            "No bootstrap was drawn (0 resamples of %(drawn)s); intervals at "
            "%(confidence)s stand where there is a formula."
        ) % {"drawn": drawn, "confidence": percent_text(settings.confidence)}
    text = _(
        "Intervals at %(confidence)s are percentiles of %(n_resamples)s bootstrap "
        "resamples of %(drawn)s."
    ) % {
        "confidence": percent_text(settings.confidence),
        "n_resamples": f"{settings.n_resamples:,}",
        "drawn": drawn,
    }
    if settings.resample == "items":
        text += " " + _(FEW) % {"few": FEW_UNITS, "least": LEAST_SYSTEMS_FOR_INTERVAL}
    if settings.cluster:
        text += " " + _("Items that are not independent were drawn together (%(cluster)s).") % {
            "cluster": settings.cluster
        }
    return text


FEW = gettext_noop(
    "Below %(few)s items, means over items and pooled correlations have Student's t on Fisher's "
    "scale instead, and Pearson's r of systems is jackknifed over items at any number; an interval "
    "is withheld where over 5 %% of the resamples are undefined. Those are for these very systems; "
    "for new systems of this kind, from %(least)s systems on, the jackknife over systems is added "
    "to the variance of the resamples."
)


COMPARED = {
    "same_draws": gettext_noop(
        "Every two metrics were compared in those same resamples of %(drawn)s, so that intervals "
        "and p of differences never contradict each other; p is two-sided, and adjusted over all "
        "pairs of the family by Holm's method and by Benjamini and Hochberg's; metrics share a "
        "rank where Holm's p is not below %(alpha)s. A p for new systems is not given below "
        "%(least)s systems."
    ),
    "new_systems": gettext_noop(
        "Every two metrics were compared in those same resamples of %(drawn)s, so that "
        "differences, their intervals and p answer for new systems of this kind; p is two-sided, "
        "not given below %(least)s systems, and adjusted over all pairs of the family by Holm's "
        "method and by Benjamini and Hochberg's; metrics share a rank where Holm's p is not "
        "below %(alpha)s."
    ),
}


def _tests(settings: Settings) -> str:
    alpha = f"{settings.alpha:g}"
    if settings.test in ("auto", "paired_bootstrap"):
        code = "same_draws" if settings.resample == "items" else "new_systems"
        drawn = RESAMPLES.get(settings.resample, settings.resample)
        values = {"drawn": drawn, "least": LEAST_SYSTEMS_FOR_P, "alpha": alpha}
        return CodedText(_(COMPARED[code]) % values, code=code)
    return _(
        "Every two metrics were tested by %(test)s (%(n_permutations)s "
        "permutations), two-sided, with p adjusted over all pairs of the family by "
        "Holm's method and by Benjamini and Hochberg's; metrics share a rank where "
        "Holm's p is not below %(alpha)s."
    ) % {
        "test": TESTS.get(settings.test, settings.test),
        "n_permutations": f"{settings.n_permutations:,}",
        "alpha": alpha,
    }


def _ceilings(settings: Settings) -> str:
    if not settings.n_splits:
        return _("No ceiling was computed (0 split halves).")
    return _(
        "The ceiling is the root of the reliability of the human values, from "
        "%(n_splits)s random split halves stepped up by Spearman and Brown's formula; that of a "
        "rank coefficient is found on Pearson's scale, as if values were normal, and is an "
        "approximation. Intervals of ceilings and of shares of them are for new items rated by "
        "these very annotators, not by others."
    ) % {"n_splits": settings.n_splits}


def _worst(settings: Settings) -> str:
    return _(
        "The %(n_worst)s candidates on which a metric is most wrong are those whose "
        "standardised score and human value lie farthest apart."
    ) % {"n_worst": settings.n_worst}


def _questions(settings: Settings) -> str:
    named = settings.questions_of
    if not named:
        return _("Every metric was set against every question.")
    pairs = [
        _("%(metric)s against %(listed)s")
        % {
            "metric": metric,
            "listed": join_names(list(questions)),
        }
        for metric, questions in named
    ]
    return _("Only these pairs were looked at: %(names)s.") % {"names": "; ".join(pairs)}


def _planned(settings: Settings) -> str:
    if not settings.planned:
        return _("No sample sizes were planned.")
    measures = [
        f"{COEFFICIENTS.get(coefficient, coefficient)} {LEVELS.get(level, level)}"
        for level, coefficient in settings.planned
    ]
    return _(
        "Sample sizes were planned for %(listed)s, by resampling the items of this "
        "study to studies of other sizes."
    ) % {"listed": join_names(measures)}


def _seed(settings: Settings) -> str:
    return _("All random draws start from seed %(seed)s.") % {"seed": settings.seed}


SENTENCES: tuple[Callable[[Settings], str], ...] = (
    _judgments,
    _levels,
    _undefined,
    _intervals,
    _tests,
    _ceilings,
    _worst,
    _questions,
    _planned,
    _seed,
)
NAMED = {
    "levels",
    "coefficients",
    "resample",
    "undefined",
    "unparsed",
    "ratings",
    "judgments",
    "aggregation",
    "round",
    "confidence",
    "n_resamples",
    "test",
    "n_permutations",
    "alpha",
    "n_splits",
    "n_worst",
    "seed",
    "questions_of",
    "primary",
    "labels",
    "planned",
    "cluster",
    "protocol",
}
