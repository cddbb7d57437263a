from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import nan, prod
from typing import Literal

from error_codes import InvalidValue, note_if
from stats.arguments import (
    Column,
    Flags,
    Floats,
    Integers,
    coded_in_order,
    complete_numbers,
    require,
    require_same_length,
    sum_by,
)
from stats.libraries import np, pd

VERSION = 1
# Probabilities this close are equal but for the rounding of the iterations.
TIE = 1e-9


class Reason(StrEnum):
    NO_LABELS = "no_labels"
    ONE_LABEL = "one_label"
    TOO_FEW_LABELS = "too_few_labels"
    NO_USABLE_LABELS = "no_usable_labels"
    NO_COMPARISONS = "no_comparisons"
    NOT_CONNECTED = "not_connected"


@dataclass(frozen=True, kw_only=True)
class Aggregation:
    """One label an item, how sure it is, and what the method found out about annotators.

    Attributes
    ----------
    method : str
        The method, as in `METHODS`.
    signature : str
        Method, parameters and version: the same signature and labels give the same result.
    labels : DataFrame
        A row an item, by item: ``item, label, n_labels`` and, for categories, ``probability``
        of the label and ``tied``; for numbers ``se, ci_low, ci_high, reason``. A label that
        cannot be given is NaN, and ``reason`` says why.
    annotators : DataFrame
        A row an annotator: ``annotator, n_labels`` and what the method estimates.
    probabilities : DataFrame or None
        Items in rows, categories in columns; None where labels are numbers.
    confusions : DataFrame or None
        ``annotator, truth, label, probability`` where the method estimates confusion matrices.
    converged : bool or None
        Whether an iterative method met its tolerance; None where there is nothing to iterate.
    iterations : int or None
        Iterations done.
    log_likelihood : float
        What the iterations increase, in nats: the log-likelihood of the labels, plus the log
        density of the prior (up to a constant) where the method smooths. NaN without a model.
    n_ties : int
        Items on which the most probable categories are tied.
    warnings : tuple of str
        What a reader should know before trusting the labels.
    reason : Reason or None
        Why there are no labels at all; None where there are.
    """

    method: str
    signature: str
    labels: pd.DataFrame
    annotators: pd.DataFrame
    probabilities: pd.DataFrame | None = None
    confusions: pd.DataFrame | None = None
    converged: bool | None = None
    iterations: int | None = None
    log_likelihood: float = nan
    n_ties: int = 0
    warnings: tuple[str, ...] = ()
    reason: Reason | None = None

    @property
    def label_by_item(self) -> dict[Hashable, object]:
        return dict(zip(self.labels["item"], self.labels["label"], strict=True))


def sign(method: str, **parameters: object) -> str:
    """A signature in sacrebleu's form: the method, ``key:value`` fields, and the version."""
    fields = [f"{name}:{value}" for name, value in parameters.items()]
    return "|".join([method, *fields, f"version:{VERSION}"])


def name_of(signature: str) -> str:
    return signature.partition("|")[0]


def nothing(signature: str, reason: Reason = Reason.NO_LABELS) -> Aggregation:
    return Aggregation(
        method=name_of(signature),
        signature=signature,
        labels=pd.DataFrame({"item": [], "label": [], "n_labels": []}),
        annotators=pd.DataFrame({"annotator": [], "n_labels": []}),
        reason=reason,
    )


def repeat_warnings(crowd: Crowd) -> tuple[str, ...]:
    return note_if(
        crowd.n_repeated,
        f"{crowd.n_repeated} labels repeat an (item, annotator) pair; each was counted",
        "repeated_labels",
    )


def annotator_table(crowd: Crowd, **estimates: Floats) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "annotator": pd.Series(crowd.annotators),
            "n_labels": crowd.labels_per_annotator.astype(np.intp),
            **estimates,
        }
    )


def chosen_categories(probability: Floats) -> tuple[Integers, Flags]:
    """The first of the most probable categories of each item, and whether it has rivals."""
    best = probability >= probability.max(axis=1, keepdims=True) - TIE
    return best.argmax(axis=1), best.sum(axis=1) > 1


def label_table(votes: Votes, probability: Floats, choice: Integers | None = None) -> pd.DataFrame:
    first, tied = chosen_categories(probability)
    category = first if choice is None else choice
    return pd.DataFrame(
        {
            "item": pd.Series(votes.items),
            "label": pd.Series(votes.categories)[category].reset_index(drop=True),
            "n_labels": votes.labels_per_item.astype(np.intp),
            "probability": probability[np.arange(len(probability)), category],
            "tied": tied,
        }
    )


def probability_table(votes: Votes, probability: Floats) -> pd.DataFrame:
    return pd.DataFrame(
        probability,
        index=pd.Index(votes.items, name="item", tupleize_cols=False),
        columns=pd.Index(votes.categories, tupleize_cols=False),
    )


def value_table(
    ratings: Ratings,
    label: Floats,
    se: Floats,
    limits: tuple[Floats, Floats],
    reason: Sequence[Reason | None],
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "item": pd.Series(ratings.items),
            "label": label,
            "n_labels": ratings.labels_per_item.astype(np.intp),
            "se": se,
            "ci_low": limits[0],
            "ci_high": limits[1],
            # As objects: pandas with pyarrow would store the text of each reason instead.
            "reason": pd.Series(np.array(reason, dtype=object), dtype=object),
        }
    )


Repeats = Literal["refuse", "count"]
# Of a dense table of floats, which then takes 800 MB.
MAX_CELLS = 100_000_000


@dataclass(frozen=True)
class Crowd:
    """Who labelled what: codes of items and annotators, both by ascending order."""

    item: Integers
    annotator: Integers
    items: list[Hashable]
    annotators: list[Hashable]
    n_repeated: int

    @property
    def n_labels(self) -> int:
        return len(self.item)

    @property
    def labels_per_item(self) -> Floats:
        return self.per_item(np.ones(self.n_labels))

    @property
    def labels_per_annotator(self) -> Floats:
        return self.per_annotator(np.ones(self.n_labels))

    def per_item(self, amounts: Floats) -> Floats:
        return sum_by(self.item, amounts, len(self.items))

    def per_annotator(self, amounts: Floats) -> Floats:
        return sum_by(self.annotator, amounts, len(self.annotators))


@dataclass(frozen=True)
class Votes(Crowd):
    """Labels that are categories: `value` holds codes of `categories`."""

    value: Integers
    categories: list[Hashable]

    @property
    def n_categories(self) -> int:
        return len(self.categories)

    def per_category(self, amounts: Floats) -> Floats:
        """Sum of an amount per label, shape (items, categories), over the labels of each kind."""
        require_table("values", items=len(self.items), categories=self.n_categories)
        cell = self.item * self.n_categories + self.value
        total = sum_by(cell, amounts, len(self.items) * self.n_categories)
        return total.reshape(len(self.items), self.n_categories)

    def shares(self) -> Floats:
        counts = self.per_category(np.ones(self.n_labels))
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Ratings(Crowd):
    value: Floats


def require_table(argument: str, **axes: int) -> None:
    if prod(axes.values()) > MAX_CELLS:
        shape = " by ".join(f"{size:,} {name}" for name, size in axes.items())
        raise InvalidValue(
            f"{argument} would take a table of {shape}, which is too large", code="table_too_large"
        )


def code_votes(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Votes:
    crowd = _code_crowd(items, annotators, values, repeats)
    value, categories = coded_in_order(values, "values")
    return Votes(**vars(crowd), value=value, categories=categories)


def code_ratings(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Ratings:
    crowd = _code_crowd(items, annotators, values, repeats)
    return Ratings(**vars(crowd), value=complete_numbers(values, "values"))


def _code_crowd(items: Column, annotators: Column, values: Column, repeats: Repeats) -> Crowd:
    require(
        repeats in ("refuse", "count"),
        f"repeats must be 'refuse' or 'count', not {repeats!r}",
        code="unknown_repeats",
    )
    require_same_length(items=items, annotators=annotators, values=values)
    item, distinct_items = coded_in_order(items, "items")
    annotator, distinct_annotators = coded_in_order(annotators, "annotators")
    n_repeated = int(pd.Series(item * len(distinct_annotators) + annotator).duplicated().sum())
    require(
        not n_repeated or repeats != "refuse",
        f"annotators label an item more than once in {n_repeated} rows of items and "
        "annotators; leave them out, or pass repeats='count' to count each",
        code="repeated_labels",
    )
    return Crowd(item, annotator, distinct_items, distinct_annotators, n_repeated)
