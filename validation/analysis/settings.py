import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any, Literal, get_args

from stats.arguments import require_confidence, require_one_of
from stats.correlation import Coefficient, Level, Resample, RowCoefficient, Undefined
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

    def varied(self, setting: str, choice: str) -> "Settings":
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
    def of(cls, content: Mapping[str, Any]) -> "Settings":
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
