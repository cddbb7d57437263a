import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import isnan
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max

from annotation.access import record_in
from annotation.exceptions import StudyUnfit, require
from annotation.frames import judgment_frame
from annotation.models import Adjudication, Candidate, Label, LabelSet, Question, Study
from annotation.units import JudgedUnits, judged_units
from stats.aggregation import Aggregation, aggregate
from stats.libraries import pd

CATEGORICAL = ("majority", "dawid_skene", "one_coin", "mace", "glad")
NUMERIC = ("mean", "trimmed_mean", "median", "bias_precision", "zscore")
METHODS_AT_LEVEL = {
    Question.Level.NOMINAL: CATEGORICAL,
    Question.Level.ORDINAL: ("median", *CATEGORICAL, "mean", "trimmed_mean"),
    Question.Level.INTERVAL: NUMERIC,
    Question.Level.RATIO: NUMERIC,
}
METHODS = tuple(dict.fromkeys((*CATEGORICAL, *NUMERIC)))
BATCH_SIZE = 1000


@dataclass(frozen=True)
class Rule:
    method: str
    round: int = 1
    parameters: Mapping[str, Any] | None = None
    with_flagged: bool = True
    with_adjudications: bool = True

    def signature(self, method: str, fingerprint: str) -> str:
        """The rule and its input in one line; `method` is the aggregation's own signature."""
        flagged = "with" if self.with_flagged else "without"
        decided = "with" if self.with_adjudications else "without"
        return (
            f"{method}|round:{self.round}|flagged:{flagged}|adjudications:{decided}"
            f"|input:{fingerprint[:16]}"
        )


def rule_of(arguments: dict[str, Any]) -> Rule:
    return Rule(**{name: value for name, value in arguments.items() if name != "question"})


@dataclass(frozen=True)
class LabelSetResult:
    label_set: LabelSet
    is_new: bool


def make_label_set(
    *, question: Question, rule: Rule, created_by: AbstractBaseUser | None = None
) -> LabelSetResult:
    """The question's labels by a rule: a new version, or the one made of the same before."""
    _require_fit(question, rule.method)
    study = question.study
    frame = judgment_frame(study, question=question, with_flagged=rule.with_flagged)
    frame = frame[frame["round"] == rule.round]
    decided = _decisions(question, rule)
    if frame.empty and not decided:
        raise StudyUnfit(
            f"Question '{question.name}' of study '{study.slug}' has no judgments in "
            f"round {rule.round}.",
            code="not_judged",
        )
    judged = judged_units(question, frame)
    aggregation = aggregate(
        judged.units, judged.annotators, judged.values, method=rule.method, **rule.parameters or {}
    )
    labels = _labels(question, judged, aggregation, decided)
    return _store(question, rule, aggregation, labels, _fingerprint(frame, decided), created_by)


def _require_fit(question: Question, method: str) -> None:
    fit = METHODS_AT_LEVEL[Question.Level(question.level)]
    require(
        method in fit,
        StudyUnfit(
            f"Question '{question.name}' is {question.level}; {method} cannot label it. "
            f"Use one of {', '.join(fit)}.",
            code="unfit_method",
        ),
    )


def _decisions(question: Question, rule: Rule) -> dict[tuple[str, str], float]:
    if not rule.with_adjudications:
        return {}
    return {
        (item, candidate): value
        for item, candidate, value in Adjudication.objects.filter(
            question=question, round=rule.round
        )
        .standing()
        .values_list("candidate__item__key", "candidate__key", "value")
    }


def _fingerprint(frame: "pd.DataFrame", decided: dict[tuple[str, str], float]) -> str:
    judged = frame[["item", "candidate", "annotator", "value"]].astype(
        {"item": str, "candidate": str, "annotator": str}
    )
    used = [sorted(judged.to_numpy().tolist()), sorted([*key, v] for key, v in decided.items())]
    return sha256(json.dumps(used).encode()).hexdigest()


def _labels(
    question: Question,
    judged: JudgedUnits,
    aggregation: Aggregation,
    decided: dict[tuple[str, str], float],
) -> list[Label]:
    rows = _label_rows(judged, aggregation)
    for pair, value in decided.items():
        if value > question.highest:  # decided that nothing can be said: it has no label
            rows.pop(pair, None)
            continue
        there = rows.get(pair, {"n_judgments": 0})
        rows[pair] = {"n_judgments": there["n_judgments"], "value": value, "is_adjudicated": True}
    return [
        Label(candidate_id=pk, **rows[item, key])
        for pk, item, key in Candidate.objects.filter(item__study=question.study_id)
        .order_by("item__position", "position", "pk")
        .values_list("pk", "item__key", "key")
        if (item, key) in rows
    ]


def _label_rows(
    judged: JudgedUnits, aggregation: Aggregation
) -> dict[tuple[str, str], dict[str, Any]]:
    keys = judged.keys
    key_of_unit = dict(
        zip(keys.index, zip(keys["item"], keys["candidate"], strict=True), strict=True)
    )
    return {
        key_of_unit[row["item"]]: {
            "value": row["label"],
            "probability": _defined(row.get("probability")),
            "se": _defined(row.get("se")),
            "n_judgments": row["n_labels"],
            "is_tied": row.get("tied", False),
        }
        for row in aggregation.labels.to_dict(orient="records")
        if not isnan(row["label"])
    }


def _defined(number: float | None) -> float | None:
    return None if number is None or isnan(number) else number


@transaction.atomic
def _store(
    question: Question,
    rule: Rule,
    aggregation: Aggregation,
    labels: list[Label],
    fingerprint: str,
    created_by: AbstractBaseUser | None,
) -> LabelSetResult:
    study = Study.objects.select_for_update().get(pk=question.study_id)
    signature = rule.signature(aggregation.signature, fingerprint)
    known = LabelSet.objects.filter(question=question, signature=signature).first()
    if known is not None:
        return LabelSetResult(known, is_new=False)
    label_set = LabelSet.objects.create(
        study=study,
        question=question,
        version=(LabelSet.objects.of(study).aggregate(last=Max("version"))["last"] or 0) + 1,
        round=rule.round,
        method=rule.method,
        parameters=dict(rule.parameters or {}),
        with_flagged=rule.with_flagged,
        with_adjudications=rule.with_adjudications,
        fingerprint=fingerprint,
        signature=signature,
        converged=aggregation.converged,
        iterations=aggregation.iterations,
        warnings=list(aggregation.warnings),
        n_labels=len(labels),
        n_adjudicated=sum(label.is_adjudicated for label in labels),
        created_by_id=created_by.pk if created_by else None,
    )
    for label in labels:
        label.label_set = label_set
    Label.objects.bulk_create(labels, batch_size=BATCH_SIZE)
    record_in(
        study,
        actor=created_by,
        action="label_set",
        details={
            "version": label_set.version,
            "question": question.name,
            "method": rule.method,
            "n_labels": len(labels),
        },
    )
    return LabelSetResult(label_set, is_new=True)
