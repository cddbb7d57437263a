from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

from error_codes import InvalidValue
from stats.aggregation import aggregate
from stats.arguments import Floats, Integers
from stats.libraries import np, pd
from validation.analysis.records import Inputs, LabelSourceRecord, ScoreSetRecord
from validation.analysis.settings import (
    EVERY_CONDITION,
    MISSING,
    SCORED,
    UNDEFINED,
    UNPARSED,
    Metric,
    Panel,
    Scope,
    Settings,
    system_codes,
)

# Reasons of judges for replies that have no grade, or none on the scale.
UNREAD = re.compile(
    r"unparsed|no (number|rating|score) in|not on the scale|is ambiguous|on another scale", re.I
)
JUDGED = {"question": "", "condition": "", "round": 1, "accepted": True}
SCORES = {"reason": "", "higher_is_better": True, "is_primary": True}


@dataclass(frozen=True)
class Design:
    """Which items were sent to people, in which batch and with which probability: `batches`, a row
    an item that was sent; and `candidates`, all of the study by item, candidate and system, with
    the item's cluster where items are not independent."""

    batches: pd.DataFrame
    candidates: pd.DataFrame


class Material:
    """The judgments and scores of a study or of plain tables.

    `judgments` has a row a judgment: question, item, system, annotator and value; optionally
    condition, candidate (otherwise named as its system), round, accepted and cluster, of items
    that are not independent (otherwise each its own). `scores` has a row
    a score: item, candidate or system, metric and value; optionally signature, reason,
    higher_is_better and is_primary. `labels` has, for the questions whose human values are
    labels instead, a row a label: question, item, candidate and value; `label_sources` says
    which sets they are of.
    """

    def __init__(
        self,
        judgments: pd.DataFrame,
        scores: pd.DataFrame,
        labels: pd.DataFrame | None = None,
        label_sources: tuple[LabelSourceRecord, ...] = (),
        ordinal: Collection[str] = (),
        design: Design | None = None,
    ) -> None:
        self.design = design
        self.judgments = _with_defaults(judgments, "judgments", ("value", "annotator"), JUDGED)
        if "cluster" in judgments:
            clusters = judgments["cluster"].astype(str).reset_index(drop=True)
            self.judgments = self.judgments.assign(cluster=clusters)
            self._require_whole_items()
        self.scores = _with_defaults(scores, "scores", ("value", "metric"), SCORES)
        if "signature" not in scores:
            self.scores = self.scores.assign(signature=self.scores["metric"])
        self._require_items_of_one_condition()
        self._require_scores_once()
        self._code_candidates()
        self.label_sources = label_sources
        self.ordinal = frozenset(ordinal)
        self._labels = {} if labels is None else self._coded(labels)
        self._values: dict[tuple[str, ...], tuple[Integers, Floats]] = {}

    @cached_property
    def judgments_digest(self) -> str:
        """Independent of the order of the rows."""
        return digest(self.judgments.drop(columns="candidate_code"))

    @cached_property
    def fingerprint(self) -> str:
        parts = [self.judgments_digest, digest(self.scores.drop(columns="is_primary"))]
        variants = [metric.metric for metric in self.metrics if not metric.is_primary]
        parts += [f"variants:{','.join(variants)}"] if variants else []
        parts += [source.signature for source in self.label_sources]
        if self.design is not None:
            parts += [digest(self.design.batches), digest(self.design.candidates)]
        return sha256("".join(parts).encode()).hexdigest()

    @property
    def labelled(self) -> frozenset[str]:
        return frozenset(self._labels)

    def panels(self, settings: Settings, *, scopes: tuple[Scope, ...]) -> Iterator[Panel]:
        for question in self.judgments["question"].unique():
            panel = self._panel(str(question), settings)
            if panel is None:
                continue
            if "all" in scopes:
                yield panel
            conditions = panel.candidates["condition"].unique()
            if "condition" in scopes and len(conditions) > 1:
                for number, name in enumerate(conditions, start=1):
                    named = {"scope": "condition", "condition": str(name), "number": number}
                    yield panel.part((panel.candidates["condition"] == name).to_numpy(), **named)

    def chosen(self, settings: Settings) -> pd.DataFrame:
        counts = self.judgments["round"] == settings.round
        if settings.judgments == "accepted":
            counts &= self.judgments["accepted"]
        return self.judgments[counts]

    def human_values(self, question: str, settings: Settings) -> pd.DataFrame:
        codes, human = self._human(question, settings)
        rows = self.candidates.iloc[codes][["item", "candidate"]].reset_index(drop=True)
        return rows.assign(human=human)

    def ratings(self, question: str, settings: Settings) -> pd.DataFrame:
        rows = self.chosen(settings)
        rows = rows[rows["question"] == question]
        return rows if settings.ratings == "raw" else without_scales(rows)

    def inputs(self, settings: Settings) -> Inputs:
        of_round = self.judgments[self.judgments["round"] == settings.round]
        return Inputs(
            n_judgments=len(of_round),
            n_rejected=int((~of_round["accepted"].astype(bool)).sum()),
            n_counted=len(self.chosen(settings)),
            n_annotators=int(of_round["annotator"].nunique()),
            n_items=int(of_round["item"].nunique()),
            n_candidates=int(of_round["candidate_code"].nunique()),
            score_sets=tuple(self._score_sets(settings)),
            labels=self.label_sources,
        )

    def _score_sets(self, settings: Settings) -> Iterator[ScoreSetRecord]:
        runs = self.scores.groupby(["metric", "signature"], sort=False, observed=True)
        counts = [np.bincount(states, minlength=4).tolist() for states in self.states]
        for metric, count, (_, rows) in zip(self.metrics, counts, runs, strict=True):
            yield ScoreSetRecord(
                metric=metric.metric,
                signature=metric.signature,
                higher_is_better=metric.higher_is_better,
                is_primary=settings.is_primary(metric.metric, metric.is_primary),
                n_scores=len(rows),
                n_undefined=count[UNDEFINED],
                n_unparsed=count[UNPARSED],
                n_unscored=count[MISSING],
                digest=digest(rows.drop(columns="is_primary")),
            )

    def _panel(self, question: str, settings: Settings) -> Panel | None:
        codes, human = self._human(question, settings)
        if not len(codes):
            return None
        numbers = [n for n, m in enumerate(self.metrics) if settings.is_for(m.metric, question)]
        states = self.states[numbers][:, codes]
        scores = self._scores[numbers][:, codes]
        if settings.unparsed == "zero":
            scores = np.where(states == UNPARSED, 0.0, scores)
        candidates = self.candidates.iloc[codes].reset_index(drop=True)
        cluster = None
        if settings.cluster:
            cluster = pd.factorize(candidates["cluster"])[0].astype(np.intp)
        return Panel(
            question=question,
            scope="all",
            condition=EVERY_CONDITION,
            number=0,
            metrics=tuple(
                replace(one, is_primary=settings.is_primary(one.metric, one.is_primary))
                for one in (self.metrics[number] for number in numbers)
            ),
            candidates=candidates,
            item=pd.factorize(candidates["item"])[0],
            system=system_codes(candidates["system"]),
            human=human,
            scores=scores,
            states=states,
            is_labelled=question in self._labels,
            cluster=cluster,
        )

    def _human(self, question: str, settings: Settings) -> tuple[Integers, Floats]:
        if question in self._labels:
            return self._labels[question]
        policies = (settings.judgments, settings.ratings, settings.aggregation)
        key = (question, *policies, str(settings.round))
        if key not in self._values:
            self._values[key] = _aggregated(self.ratings(question, settings), settings)
        return self._values[key]

    def _coded(self, labels: pd.DataFrame) -> dict[str, tuple[Integers, Floats]]:
        index = pd.MultiIndex.from_frame(self.candidates[["item", "candidate"]])
        names = labels[["item", "candidate"]].astype(str)
        codes = index.get_indexer(pd.MultiIndex.from_frame(names))
        rows = labels.assign(candidate_code=codes).loc[codes >= 0].sort_values("candidate_code")
        return {
            str(question): (
                part["candidate_code"].to_numpy(dtype=np.intp),
                part["value"].to_numpy(dtype=np.float64),
            )
            for question, part in rows.groupby("question", sort=False)
        }

    def _require_items_of_one_condition(self) -> None:
        conditions = self.judgments.drop_duplicates(["item", "condition"])["item"]
        if (repeated := conditions[conditions.duplicated()]).size:
            raise InvalidValue(
                f"judgments name item '{repeated.iloc[0]}' in several conditions; "
                "give items of different conditions different names",
                code="several_conditions",
            )

    def _require_whole_items(self) -> None:
        clusters = self.judgments.drop_duplicates(["item", "cluster"])["item"]
        if (repeated := clusters[clusters.duplicated()]).size:
            raise InvalidValue(
                f"judgments name item '{repeated.iloc[0]}' in several clusters",
                code="several_clusters",
            )

    def _require_scores_once(self) -> None:
        repeated = self.scores[self.scores.duplicated(["item", "candidate", "metric", "signature"])]
        if len(repeated):
            first = repeated.iloc[0]
            raise InvalidValue(
                f"scores have item '{first['item']}', candidate '{first['candidate']}' and "
                f"metric '{first['metric']}' twice; leave one",
                code="score_twice",
            )

    def _code_candidates(self) -> None:
        names = self.judgments[["item", "candidate"]].drop_duplicates(ignore_index=True)
        index = pd.MultiIndex.from_frame(names)
        at = index.get_indexer(pd.MultiIndex.from_frame(self.judgments[["item", "candidate"]]))
        self.judgments = self.judgments.assign(candidate_code=at)
        first = self.judgments.drop_duplicates("candidate_code")
        columns = ["item", "candidate", "system", "condition"]
        columns += ["cluster"] if "cluster" in self.judgments else []
        self.candidates = first.sort_values("candidate_code")[columns].reset_index(drop=True)
        runs = self.scores.groupby(["metric", "signature"], sort=False, observed=True)
        declared = runs[["higher_is_better", "is_primary"]].first()
        self.metrics = [
            Metric(str(metric), str(signature), bool(is_up), bool(is_primary))
            for metric, signature, is_up, is_primary in declared.reset_index().itertuples(
                index=False
            )
        ]
        run = runs.ngroup().to_numpy()
        codes = index.get_indexer(pd.MultiIndex.from_frame(self.scores[["item", "candidate"]]))
        value = self.scores["value"].to_numpy(dtype=np.float64)
        sign = np.array([1.0 if metric.higher_is_better else -1.0 for metric in self.metrics])
        known = codes >= 0
        run, codes, value = run[known], codes[known], value[known]
        unread = self.scores["reason"].astype(str).map(UNREAD.search).notna().to_numpy()[known]
        state = np.where(~np.isnan(value), SCORED, np.where(unread, UNPARSED, UNDEFINED))
        self._scores = np.full((len(self.metrics), len(self.candidates)), np.nan)
        self.states = np.full(self._scores.shape, MISSING, dtype=np.int8)
        self._scores[run, codes] = value * sign[run] if len(run) else value
        self.states[run, codes] = state


def without_scales(rows: pd.DataFrame) -> pd.DataFrame:
    by_person = rows.groupby("annotator", observed=True)["value"]
    rows = rows[(by_person.transform("max") > by_person.transform("min")).to_numpy()]
    by_person = rows.groupby("annotator", observed=True)["value"]
    centred = rows["value"] - by_person.transform("mean")
    return rows.assign(value=centred / by_person.transform("std"))


def digest(frame: pd.DataFrame) -> str:
    plain = frame.astype(dict.fromkeys(frame.select_dtypes("category"), str))
    rows = pd.util.hash_pandas_object(plain.reindex(sorted(plain), axis=1), index=False)
    return sha256(np.sort(rows.to_numpy()).tobytes()).hexdigest()


def _aggregated(rows: pd.DataFrame, settings: Settings) -> tuple[Integers, Floats]:
    known = rows[rows["value"].notna()]
    if known.empty:
        return np.empty(0, dtype=np.intp), np.empty(0)
    values = aggregate(
        known["candidate_code"],
        known["annotator"].astype(str),
        known["value"],
        method=settings.aggregation,
        repeats="count",
    ).labels
    defined = values[values["label"].notna()]
    return defined["item"].to_numpy(dtype=np.intp), defined["label"].to_numpy(dtype=np.float64)


def _with_defaults(
    frame: pd.DataFrame, name: str, needed: tuple[str, ...], defaults: dict[str, Any]
) -> pd.DataFrame:
    columns = set(frame.columns)
    missing = [column for column in ("item", *needed) if column not in columns]
    if missing or not columns & {"candidate", "system"}:
        raise InvalidValue(
            f"{name} must have a column {(missing or ['candidate or system'])[0]}",
            code="missing_column",
        )
    absent = {column: value for column, value in defaults.items() if column not in columns}
    frame = frame.reset_index(drop=True).assign(**absent)
    for column, other in (("candidate", "system"), ("system", "candidate")):
        if column not in columns:
            frame = frame.assign(**{column: frame[other]})
    texts: dict[str, Any] = {"item": str, "candidate": str, "system": str, "value": "float64"}
    if "condition" in frame:
        texts |= {"condition": str, "question": str}
    names = dict.fromkeys(["item", "candidate", "system", *needed, *defaults])
    return frame[[*names, *(["signature"] if "signature" in columns else [])]].astype(texts)
