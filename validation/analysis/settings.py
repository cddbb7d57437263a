from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, get_args

from stats.arguments import Flags, Floats, Integers, Signs, require_confidence, require_one_of
from stats.correlation import Coefficient, Level, Resample, RowCoefficient, Undefined
from stats.libraries import np, pd
from stats.significance import Test

Aggregation = Literal["mean", "median", "trimmed_mean", "bias_precision"]
Ratings = Literal["raw", "zscore"]
Judgments = Literal["accepted", "all"]
Unparsed = Literal["drop", "zero"]
ReportTest = Literal["auto", "paired_bootstrap"] | Test
KEY_CLUSTER = re.compile(r"key:.\Z", re.DOTALL)
# The settings that a report varies one at a time, with the choices it tries.
POLICIES: dict[str, tuple[str, ...]] = {
    "undefined": ("drop", "zero"),
    "unparsed": get_args(Unparsed),
    "ratings": get_args(Ratings),
    "judgments": get_args(Judgments),
    "aggregation": ("mean", "median", "trimmed_mean"),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a report shows, and what it does where opinions differ about what is right.

    `cluster` says which items are not independent, so that they are drawn together: ``"context"``
    are items of one context, ``"key:_"`` those whose keys are equal up to the last ``_``;
    ``"column"`` is a column of plain tables. `undefined` is what becomes of groups with a
    constant side, `unparsed` of scores whose source could not be read, `ratings` whether each
    annotator's scale is taken out first, `judgments` whether rejected ones count, `aggregation`
    how several judgments of a candidate become one. `questions_of` names, by metric, the only
    questions it is meant for. `primary` names the metrics that tests, corrections and ranks are
    of, instead of those that scorers declare; `labels` the versions of label sets that are the
    human values of their questions, instead of judgments; `protocol` the version of the protocol
    whose judgments alone count. `test` is one of `stats.significance`, or
    ``"paired_bootstrap"``: the p of the draws that the intervals are of, which ``"auto"`` is too.
    """

    levels: tuple[Level, ...] = get_args(Level)
    coefficients: tuple[Coefficient, ...] = ("pearson", "spearman", "kendall")
    resample: Resample = "items"
    cluster: str = ""
    undefined: Undefined = "drop"
    unparsed: Unparsed = "drop"
    ratings: Ratings = "raw"
    judgments: Judgments = "accepted"
    aggregation: Aggregation = "mean"
    round: int = 1
    confidence: float = 0.95
    n_resamples: int = 1000
    test: ReportTest = "auto"
    n_permutations: int = 2000
    alpha: float = 0.05
    n_splits: int = 20
    n_worst: int = 10
    seed: int = 0
    questions_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    primary: tuple[str, ...] = ()
    labels: tuple[int, ...] = ()
    planned: tuple[tuple[Level, Coefficient], ...] = ()
    protocol: int | None = None

    def __post_init__(self) -> None:
        require_one_of(
            resample=(self.resample, get_args(Resample)),
            undefined=(self.undefined, get_args(Undefined)),
            unparsed=(self.unparsed, get_args(Unparsed)),
            ratings=(self.ratings, get_args(Ratings)),
            judgments=(self.judgments, get_args(Judgments)),
            aggregation=(self.aggregation, get_args(Aggregation)),
            test=(self.test, ("auto", "paired_bootstrap", *get_args(Test))),
            **{f"planned ({level})": (level, get_args(Level)) for level, _ in self.planned},
            **{f"planned ({c})": (c, get_args(RowCoefficient)) for _, c in self.planned},
            **{f"levels ({level})": (level, get_args(Level)) for level in self.levels},
            **{f"coefficients ({c})": (c, get_args(Coefficient)) for c in self.coefficients},
        )
        for name in ("levels", "coefficients", "planned", "primary", "labels"):
            if len(set(named := getattr(self, name))) < len(named):
                raise ValueError(f"{name} must each be named once, not {named}")
        if self.cluster not in ("", "column", "context") and not KEY_CLUSTER.match(self.cluster):
            raise ValueError(
                f"cluster must be 'context', or 'key:' and a character, not {self.cluster!r}"
            )
        require_confidence(self.confidence)
        for name in ("n_resamples", "n_splits", "n_worst", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        if self.n_permutations < 1:
            raise ValueError(f"n_permutations must be at least 1, not {self.n_permutations}")

    def measures(self) -> Iterator[tuple[Level, Coefficient]]:
        for level in self.levels:
            for coefficient in self.coefficients:
                if coefficient != "spa" or level == "system":
                    yield level, coefficient

    def varied(self, setting: str, choice: str) -> Settings:
        return replace(self, **{setting: choice})  # type: ignore[arg-type]

    def is_for(self, metric: str, question: str) -> bool:
        named = dict(self.questions_of)
        return not named or question in named.get(metric, ())

    def is_primary(self, metric: str, is_declared: bool) -> bool:
        return metric in self.primary if self.primary else is_declared

    @property
    def digest(self) -> str:
        return sha256(json.dumps(self.content(), sort_keys=True).encode()).hexdigest()

    def content(self) -> dict[str, Any]:
        values = {name: _plain(value) for name, value in asdict(self).items()}
        if self.protocol is None:
            # As before there was a choice, so that what is stored stays what it is.
            del values["protocol"]
        return values | {"questions_of": {m: list(q) for m, q in self.questions_of}}

    def changes(self) -> dict[str, Any]:
        """The settings that differ from the defaults."""
        defaults = Settings().content()
        return {
            name: value
            for name, value in self.content().items()
            if name not in defaults or value != defaults[name]
        }

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Settings:
        """Missing keys have the default value."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(content) - known):
            raise ValueError(f"there is no setting {', '.join(unknown)}")
        return cls(**{name: _frozen(value) for name, value in content.items()})


def only_for(questions_of: Mapping[str, Any] | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((metric, tuple(questions)) for metric, questions in (questions_of or {}).items())


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return only_for(value)
    return tuple(_frozen(one) for one in value) if isinstance(value, list) else value


EVERY_CONDITION = ""
Scope = Literal["all", "condition", "mean_of_conditions"]
MISSING, SCORED, UNDEFINED, UNPARSED = range(4)


@dataclass(frozen=True)
class Metric:
    """One set of scores. A variant (precision beside F, a complement) is not tested."""

    metric: str
    signature: str
    higher_is_better: bool
    is_primary: bool = True

    def record(self) -> dict[str, Any]:
        return vars(self).copy()


@dataclass(frozen=True)
class Coverage:
    n_candidates: int
    n_scored: int
    n_unscored: int
    n_undefined_scores: int
    n_unparsed: int
    n_items_of_one_score: int


@dataclass(frozen=True)
class Panel:
    """Judged candidates with a human value and, by metric, a score; NaN where there is none.

    Scores are turned so that higher is better. `item` and `system` are codes in order of
    appearance, and `system` is -1 for a candidate of no system; `number` counts the panels of a
    question, and with the seed makes each panel's own. Where `is_labelled`, human values are a
    label set's, and not made of the judgments here.
    """

    question: str
    scope: Scope
    condition: str
    number: int
    metrics: tuple[Metric, ...]
    candidates: pd.DataFrame
    item: Integers
    system: Integers
    human: Floats
    scores: Floats
    states: Signs
    is_labelled: bool = False
    # The cluster of each candidate's item; all panels of a question share the codes.
    cluster: Integers | None = None

    @property
    def units(self) -> Integers:
        return self.item if self.cluster is None else self.cluster

    @property
    def n_units(self) -> int:
        return int(self.units.max(initial=-1)) + 1

    @cached_property
    def system_by_name(self) -> Integers:
        """Codes by name, the same in all conditions; "" is one more system."""
        return np.unique(self.candidates["system"].astype(str), return_inverse=True)[1]

    @cached_property
    def cluster_of_item(self) -> Integers | None:
        if self.cluster is None:
            return None
        of_item = np.zeros(self.n_items, dtype=np.intp)
        of_item[self.item] = self.cluster
        return of_item

    def draws_seed(self, seed: int) -> int:
        """Clusters are the same in every condition, and are drawn once for all of them."""
        return seed if self.cluster is not None else seed + self.number

    @property
    def n_items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @cached_property
    def repeats_cells(self) -> bool:
        return bool(pd.DataFrame({"item": self.item, "system": self.system}).duplicated().any())

    @cached_property
    def coverages(self) -> list[Coverage]:
        return [self._coverage(number) for number in range(len(self.metrics))]

    def _coverage(self, number: int) -> Coverage:
        missing, _, undefined, unparsed = np.bincount(self.states[number], minlength=4).tolist()
        scored = int(np.count_nonzero(~np.isnan(self.scores[number])))
        of_one = self._items_of_one_score(number)
        return Coverage(len(self.human), scored, missing, undefined, unparsed, of_one)

    def _items_of_one_score(self, number: int) -> int:
        known = ~np.isnan(self.scores[number])
        by_item = pd.Series(self.scores[number][known]).groupby(self.item[known])
        spread = by_item.agg(["size", "min", "max"])
        return int(((spread["size"] > 1) & (spread["min"] == spread["max"])).sum())

    def of_systems(self) -> Panel:
        return self if (self.system >= 0).all() else self.part(self.system >= 0)

    def cells(self, number: int) -> pd.DataFrame:
        sign = 1 if self.metrics[number].higher_is_better else -1
        return pd.DataFrame({"human": self.human, "score": sign * self.scores[number]}).assign(
            **{name: self.candidates[name].to_numpy() for name in ("item", "candidate", "system")}
        )

    def of_primary(self) -> Panel:
        numbers = [number for number, metric in enumerate(self.metrics) if metric.is_primary]
        if len(numbers) == len(self.metrics):
            return self
        return replace(
            self,
            metrics=tuple(self.metrics[number] for number in numbers),
            scores=self.scores[numbers],
            states=self.states[numbers],
        )

    def part(self, chosen: Flags, **named: Any) -> Panel:
        return replace(
            self,
            candidates=self.candidates[chosen],
            item=pd.factorize(self.item[chosen])[0],
            system=system_codes(self.candidates["system"][chosen]),
            human=self.human[chosen],
            scores=self.scores[:, chosen],
            states=self.states[:, chosen],
            cluster=None if self.cluster is None else self.cluster[chosen],
            **named,
        )


def system_codes(names: pd.Series[Any]) -> Integers:
    texts = names.astype(str)
    codes, _ = pd.factorize(texts.where(texts != ""))
    return codes.astype(np.intp)
