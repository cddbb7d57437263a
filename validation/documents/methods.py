"""The methods paragraph, written out from the settings a report was made with."""

from collections.abc import Callable
from dataclasses import fields

from validation.analysis.records import Inputs
from validation.analysis.settings import Settings
from validation.documents.wording import (
    CHOICES,
    COEFFICIENTS,
    LEVELS,
    LEVELS_TOLD,
    RESAMPLES,
    TESTS,
    family,
    listed,
)


def methods_paragraph(settings: Settings, inputs: Inputs) -> str:
    """How the numbers were made, naming every setting; one without words of its own, as it is."""
    sentences = [_material(inputs), _labels(settings, inputs), _family(settings, inputs)]
    sentences += [sentence(settings) for sentence in SENTENCES]
    unnamed = [field.name for field in fields(settings) if field.name not in NAMED]
    if unnamed:
        rest = "; ".join(f"{name} = {getattr(settings, name)}" for name in unnamed)
        sentences.append(f"Further settings: {rest}.")
    return " ".join(sentence for sentence in sentences if sentence)


def _material(inputs: Inputs) -> str:
    n_metrics = len(inputs.score_sets)
    scores = "one set of scores" if n_metrics == 1 else f"{n_metrics} sets of scores"
    return (
        f"{inputs.n_counted:,} of {inputs.n_judgments:,} judgments by "
        f"{inputs.n_annotators:,} annotators, of {inputs.n_candidates:,} candidates in "
        f"{inputs.n_items:,} items, were set against {scores}."
    )


def _labels(settings: Settings, inputs: Inputs) -> str:
    """Which label sets the human values are, where they are not made of judgments."""
    if not settings.labels:
        return ""
    named = [
        f"of {one.question} labels {one.version} ({one.n_labels:,} labels, "
        f"{one.n_adjudicated:,} of them adjudicated; {one.signature})"
        for one in inputs.labels
    ]
    versions = listed([str(version) for version in settings.labels])
    return f"Human values are labels, not made of judgments here: {listed(named) or versions}."


def _family(settings: Settings, inputs: Inputs) -> str:
    """Of what tests and ranks are."""
    names = listed([one.metric for one in inputs.primary])
    chosen = "chosen by name" if settings.primary else "as their scorers declare"
    named = f" ({names or listed(list(settings.primary))}; {chosen})"
    return f"{family(inputs).removesuffix('.')}{named}."


def _judgments(settings: Settings) -> str:
    """Which judgments count, and how they become a human value."""
    rejected = {"accepted": "rejected ones left out", "all": "rejected ones counted too"}
    which = rejected.get(settings.judgments, settings.judgments)
    ratings = {
        "raw": "as given",
        "zscore": "turned into standard deviations from the mean of each annotator's own",
    }
    how = ratings.get(settings.ratings, settings.ratings)
    rule = CHOICES.get(settings.aggregation, settings.aggregation)
    return (
        f"Judgments are of round {settings.round}, {which}, {how}; a candidate's human value "
        f"is the {rule} over annotators."
    )


def _levels(settings: Settings) -> str:
    names = [COEFFICIENTS.get(name, name) for name in settings.coefficients]
    levels = [LEVELS_TOLD.get(level, level) for level in settings.levels]
    return f"Agreement is {listed(names)}, computed {listed(levels)}."


def _undefined(settings: Settings) -> str:
    what = CHOICES.get(settings.undefined, settings.undefined)
    told = {"drop": "left out, and counted", "zero": "taken for 0"}
    unread = told.get(settings.unparsed, settings.unparsed)
    verb = "" if settings.undefined == "nan" else "are "
    return (
        f"Groups in which people or the metric gave all candidates the same value {verb}{what}; "
        f"scores whose source could not be read are {unread}."
    )


def _intervals(settings: Settings) -> str:
    drawn = RESAMPLES.get(settings.resample, settings.resample)
    if not settings.n_resamples:
        return (
            f"No bootstrap was drawn (0 resamples of {drawn}); intervals at "
            f"{settings.confidence:.0%} stand where there is a formula."
        )
    return (
        f"Intervals at {settings.confidence:.0%} are percentiles of "
        f"{settings.n_resamples:,} bootstrap resamples of {drawn}."
    )


def _tests(settings: Settings) -> str:
    test = TESTS.get(settings.test, settings.test)
    return (
        f"Every two metrics were tested by {test} ({settings.n_permutations:,} permutations), "
        "two-sided, with p adjusted over all pairs of the family by Holm's method and by "
        "Benjamini and Hochberg's; metrics share a rank where Holm's p is not below "
        f"{settings.alpha:g}."
    )


def _ceilings(settings: Settings) -> str:
    if not settings.n_splits:
        return "No ceiling was computed (0 split halves)."
    return (
        "The ceiling is the root of the reliability of the human values, from "
        f"{settings.n_splits} random split halves stepped up by Spearman and Brown's formula."
    )


def _worst(settings: Settings) -> str:
    return (
        f"The {settings.n_worst} candidates on which a metric is most wrong are those whose "
        "standardised score and human value lie farthest apart."
    )


def _questions(settings: Settings) -> str:
    named = settings.questions_of
    if not named:
        return "Every metric was set against every question."
    pairs = [f"{metric} against {listed(list(asked))}" for metric, asked in named]
    return f"Only these pairs were looked at: {'; '.join(pairs)}."


def _planned(settings: Settings) -> str:
    if not settings.planned:
        return "No sample sizes were planned."
    measures = [
        f"{COEFFICIENTS.get(coefficient, coefficient)} {LEVELS.get(level, level)}"
        for level, coefficient in settings.planned
    ]
    return (
        f"Sample sizes were planned for {listed(measures)}, by resampling the items of this study "
        "to studies of other sizes."
    )


def _seed(settings: Settings) -> str:
    return f"All random draws start from seed {settings.seed}."


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
}
