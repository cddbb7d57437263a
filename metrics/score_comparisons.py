"""What each metric says of each system, under two prompts or two encoders.

A study of golden answers has an item for each question under each prompt; the prompt is the
item's condition, the question its context. An answer under one prompt is paired with the same
system's answer to the same question under another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import nan
from typing import Any

from annotation.frames import candidate_frame
from annotation.models import Item, Study
from metrics.exceptions import ModelUnfit, NothingToScore, NotPaired, get_code
from metrics.models import ScoringRun
from metrics.scorers.embedding import r_squared, random_words_control
from metrics.scorers.errors import NoScoreError, ScorerError
from metrics.scorers.interface import Scorer
from metrics.stored_scores import signature_of
from metrics.study_files import score_frame
from presentation.numbers import plain_values
from stats.libraries import pd
from stats.significance.adjustments import holm
from stats.significance.paired_differences import PairedDifference, paired_difference

# Stands for every system, or every condition.
ALL = ""


@dataclass(frozen=True)
class PromptEffect:
    """What the second prompt changes in one metric of one system, or of all of them.

    For all systems a question counts once, with the mean over the systems that have a score
    of it under both prompts, since answers to one question are not independent of each other.
    """

    metric: str
    signature: str
    system: str
    difference: PairedDifference
    t_p_holm: float
    wilcoxon_p_holm: float

    def record(self) -> dict[str, Any]:
        named = {"metric": self.metric, "signature": self.signature, "system": self.system}
        adjusted = {"t_p_holm": self.t_p_holm, "wilcoxon_p_holm": self.wilcoxon_p_holm}
        return named | plain_values(asdict(self.difference) | adjusted)


def scored_responses(study: Study) -> pd.DataFrame:
    candidates = candidate_frame(study)[["item", "candidate", "system", "condition", "context"]]
    return score_frame(study).merge(candidates, on=["item", "candidate"], how="left")


def system_scores(study: Study) -> list[dict[str, Any]]:
    scores = scored_responses(study)
    return [
        {
            "metric": str(metric),
            "signature": str(signature),
            "system": str(system),
            "condition": condition,
            "mean": float(part["value"].mean()),
            "sd": float(part["value"].std(ddof=1)),
            "n": int(part["value"].notna().sum()),
            "n_undefined": int(part["value"].isna().sum()),
        }
        for (metric, signature), run in scores.groupby(["metric", "signature"], sort=False)
        for system, answers in run.groupby("system", sort=False)
        for condition, part in _by_condition(answers)
    ]


def prompt_effects(
    study: Study,
    *,
    prompts: tuple[str, str] = ("standard", "enhanced"),
    n_resamples: int = 10_000,
    seed: int = 0,
) -> list[PromptEffect]:
    """Compare two prompts, by each metric: over all systems, and for each of them.

    The p-values are adjusted by Holm's method over all the rows of primary metrics together;
    those of variants are not adjusted, and enter no correction.
    """
    scores = scored_responses(study)
    _require_prompts(study, prompts, scores)
    effects = [
        (
            str(metric),
            str(signature),
            system,
            paired_difference(
                pairs[prompts[0]], pairs[prompts[1]], n_resamples=n_resamples, seed=seed
            ),
        )
        for (metric, signature), run in scores.groupby(["metric", "signature"], sort=False)
        for system, pairs in _pairs(run, prompts)
    ]
    primary = set(
        ScoringRun.objects.of(study).filter(is_primary=True).values_list("metric", "signature")
    )
    family = [(metric, signature) in primary for metric, signature, *_ in effects]
    tests = [(row[-1], is_in) for row, is_in in zip(effects, family, strict=True)]
    t_ps = holm([test.t_p if is_in else nan for test, is_in in tests])
    wilcoxon_ps = holm([test.wilcoxon_p if is_in else nan for test, is_in in tests])
    return [
        PromptEffect(*row, t_p_holm=float(t_p), wilcoxon_p_holm=float(wilcoxon_p))
        for row, t_p, wilcoxon_p in zip(effects, t_ps, wilcoxon_ps, strict=True)
    ]


def _by_condition(answers: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield ALL, answers
    for condition, part in answers.groupby("condition", sort=False):
        if condition:
            yield str(condition), part


def _pairs(run: pd.DataFrame, prompts: Sequence[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    """Answers under both prompts, a row a question: the mean of all systems', then each one's."""
    compared = run[run["condition"].isin(prompts)]
    pairs = compared.pivot(index=["system", "context"], columns="condition", values="value")
    # A metric may have scores under one prompt only.
    pairs = pairs.reindex(columns=list(prompts))
    yield (
        ALL,
        pairs.dropna().groupby("context", sort=False).mean().reindex(pairs.index.unique("context")),
    )
    for system in dict.fromkeys(compared["system"]):
        yield str(system), pairs.loc[system]


def _require_prompts(study: Study, prompts: Sequence[str], scores: pd.DataFrame) -> None:
    if scores.empty:
        raise NotPaired(f"Study '{study.slug}' has no scores; score it first.", code="no_scores")
    conditions = list(dict.fromkeys(scores["condition"]))
    if unknown := [prompt for prompt in prompts if prompt not in conditions]:
        available = ", ".join(name for name in conditions if name) or "none"
        raise NotPaired(
            f"Study '{study.slug}' has no condition '{unknown[0]}'. Conditions: {available}.",
            code="unknown_condition",
        )
    if prompts[0] == prompts[1]:
        message = f"'{prompts[0]}' cannot be compared with itself; name two conditions."
        raise NotPaired(message, code="same_condition")
    compared = scores[scores["condition"].isin(prompts)]
    twice = compared[compared.duplicated(["metric", "signature", "system", "context", "condition"])]
    if not twice.empty:
        first = twice.iloc[0]
        raise NotPaired(
            f"'{first['system']}' has two answers to the same question under "
            f"'{first['condition']}': '{first['context'][:60]}'. Answers are paired by question.",
            code="two_answers",
        )


ENCODERS = ("embedding", "use")


def encoder_bias(
    *, study: Study, scorer: Scorer, n_words: int = 20, seed: int = 0
) -> dict[str, Any]:
    """A metric's mean over random words (`bias`), next to its mean over the study's responses.

    The first should be near 0; the second is NaN if the study is not scored with the metric.
    """
    references = _references(study)
    signature = signature_of(scorer)
    try:
        control = random_words_control(scorer, references, n_words=n_words, seed=seed)
    except NoScoreError as error:
        raise NothingToScore(
            f"{scorer.name} gives random words no score against any reference of study "
            f"'{study.slug}' ({signature}).",
            code="unknown_words",
        ) from error
    except ScorerError as error:
        raise ModelUnfit(str(error), code=get_code(error)) from error
    scores = score_frame(study)
    own = scores[(scores["metric"] == scorer.name) & (scores["signature"] == signature)]
    return {
        "metric": scorer.name,
        "signature": signature,
        "bias": control.bias,
        "bias_sd": control.standard_deviation,
        "n_references": control.n_texts,
        "n_words": n_words,
        "seed": seed,
        "mean": float(own["value"].mean()),
    }


def encoder_pairs(study: Study, metrics: Sequence[str] = ENCODERS) -> list[dict[str, Any]]:
    scores = score_frame(study)
    selected = scores[scores["metric"].isin(metrics)]
    table = selected.pivot(index=["item", "candidate"], columns="signature", values="value")
    return metric_pairs(table, list(dict.fromkeys(selected["signature"])))


def metric_pairs(table: pd.DataFrame, names: Sequence[str]) -> list[dict[str, Any]]:
    """R² of each two columns, over the rows that both have a value in."""
    return [
        {
            "first": first,
            "second": second,
            "r_squared": r_squared(table[first].tolist(), table[second].tolist()),
            "n": len(table[[first, second]].dropna()),
        }
        for first, second in combinations(names, 2)
    ]


def _references(study: Study) -> list[str]:
    texts = Item.objects.filter(study=study).exclude(reference="").order_by("position", "pk")
    distinct = dict.fromkeys(texts.values_list("reference", flat=True))
    references = [text for text in distinct if text.strip()]
    if not references:
        raise NothingToScore(
            f"Study '{study.slug}' has no references to compare with.", code="no_references"
        )
    return references
