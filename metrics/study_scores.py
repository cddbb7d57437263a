"""Scoring a study: each text once per signature, batch by batch, so that it can be resumed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotation.models import Candidate, Study
from annotation.versions import count_scores_change
from metrics.batches import Content, chunks, content_of, grouped
from metrics.exceptions import MetricUnknown, ModelUnfit, NothingToScore, ParameterRefused
from metrics.models import LONGEST_SIGNATURE, Score, ScoringRun
from metrics.run_leases import RunLease, leased
from metrics.scorers import scorer as scorers
from metrics.scorers.errors import ScorerError
from metrics.scorers.judges.budget import Estimate
from metrics.scorers.judges.judge import EndpointJudge
from metrics.scorers.registry import SCORERS, build
from metrics.scorers.scorer import Example, Scorer, Scores
from metrics.study_judges import is_judge, judge_record, judges_client, prepare
from presentation.counts import count_of
from presentation.progress import Progress, silently

LOOKED_UP_AT_ONCE = 500
READ_AT_ONCE = 2000
Group = tuple[Content, list[int]]
"""A content, and the keys of the candidates that have it."""


@dataclass(frozen=True)
class Scored:
    """What one scoring run wrote, how much of it others had computed, and what it found done."""

    metric: str
    signature: str
    n_scored: int
    n_known: int
    n_reused: int = 0

    def __str__(self) -> str:
        scored = ngettext("{n:,} candidate scored", "{n:,} candidates scored", self.n_scored)
        parts = [scored.format(n=self.n_scored)]
        if self.n_reused:
            parts.append(_("{n:,} of them reused").format(n=self.n_reused))
        if self.n_known:
            parts.append(_("{n:,} were scored already").format(n=self.n_known))
        return f"{self.metric}: {', '.join(parts)} ({self.signature})."


@dataclass(frozen=True)
class Plan:
    """What scoring a study would have to do; `examples` are the texts to be computed.

    What that takes of an endpoint is estimated for the metrics that ask one.
    """

    metric: str
    signature: str
    n_candidates: int
    n_known: int
    n_reusable: int
    examples: tuple[Example, ...]
    estimate: Estimate | None

    def record(self) -> dict[str, Any]:
        """As plain values for JSON, the texts counted; amounts of money are text."""
        estimate = (
            asdict(self.estimate) | {"usd": str(self.estimate.usd)} if self.estimate else None
        )
        return vars(self) | {"examples": len(self.examples), "estimate": estimate}

    def __str__(self) -> str:
        estimate = f" Estimated: {self.estimate}." if self.estimate else ""
        return (
            f"{self.metric}: {count_of(len(self.examples), 'text')} to compute for "
            f"{count_of(self.n_candidates, 'candidate')}, of which {self.n_known} are scored "
            f"already and {self.n_reusable} have texts scored before ({self.signature}).{estimate}"
        )


def named_scorer(name: str, **parameters: object) -> Scorer:
    """The scorer of that name with the site's settings, or MetricUnknown with the names there are.

    A model named in the settings may be fetched from its hub. What `parameters` name goes before
    the settings.
    """
    configured: dict[str, object] = {}
    if name == "embedding" and settings.EMBEDDING_MODEL:
        configured = {"model": settings.EMBEDDING_MODEL, "download": True}
    if is_judge(name) and "client" not in parameters:
        configured = {"client": judges_client()}
    try:
        return build(name, **(configured | parameters))
    except (OSError, TypeError, ValueError) as error:
        refused = MetricUnknown if name not in SCORERS else ParameterRefused
        raise refused(f"{error}.") from error
    except ScorerError as error:
        raise ModelUnfit(f"{name}: {error}") from error


def plan_scoring(*, study: Study, scorer: Scorer) -> Plan:
    """What `score_study` would compute, without computing or writing anything."""
    prepare(scorer, only_estimates=True)
    signature = signature_of(scorer)
    known = ScoringRun.objects.of(study).filter(metric=scorer.name, signature=signature).first()
    groups = _waiting(study, known)
    stored = {
        digest
        for chunk in chunks(groups, LOOKED_UP_AT_ONCE)
        for digest in _stored_scores(scorer, chunk)
    }
    fresh = [group for group in groups if group[0].digest not in stored]
    n_candidates = Candidate.objects.filter(item__study=study).count()
    n_waiting = sum(len(keys) for _, keys in groups)
    examples = tuple(
        example for chunk in chunks(fresh, READ_AT_ONCE) for example in _examples(chunk)
    )
    return Plan(
        metric=scorer.name,
        signature=signature,
        n_candidates=n_candidates,
        n_known=n_candidates - n_waiting,
        n_reusable=n_waiting - sum(len(keys) for _, keys in fresh),
        examples=examples,
        estimate=estimated(scorer, examples),
    )


def estimated(scorer: Scorer, examples: Sequence[Example]) -> Estimate | None:
    """What computing the scores would take of an endpoint; None where there is none."""
    try:
        return scorer.estimate(examples) if isinstance(scorer, EndpointJudge) else None
    except ScorerError as error:
        raise ModelUnfit(f"{scorer.name}: {error}") from error


def score_study(
    *,
    study: Study,
    scorer: Scorer,
    progress: Progress = silently,
    retry_undefined: bool = False,
) -> Scored:
    """Give every candidate of a study the scorer's outputs; those it has are left alone.

    A text that was scored under the same signature before, in any study, is not computed again.
    With `retry_undefined`, candidates that have an undefined output are scored anew.
    """
    total = Candidate.objects.filter(item__study=study).count()
    if total == 0:
        raise NothingToScore(f"Study '{study.slug}' has no candidates; import some first.")
    prepare(scorer)
    runs = _runs(study, scorer)
    with leased(runs[0], n_before=runs[0].scores.count(), n_total=total) as lease:
        if retry_undefined:
            _forget_undefined(lease, runs)
        groups = _waiting(study, runs[0])
        n_waiting = sum(len(keys) for _, keys in groups)
        steps = progress(_score(groups, scorer, runs, lease), n_waiting)
        n_reused = sum(was_reused for was_reused in steps)
    return Scored(scorer.name, runs[0].signature, n_waiting, total - n_waiting, n_reused)


def signature_of(scorer: Scorer) -> str:
    """The scorer's signature; a missing model is reported as ModelUnfit."""
    try:
        signature = scorer.signature
    except ScorerError as error:
        raise ModelUnfit(str(error)) from error
    except ValueError as error:
        raise ParameterRefused(f"{scorer.name} cannot be signed: {error}.") from error
    if len(signature) > LONGEST_SIGNATURE:
        excess = f"{len(signature)} characters, where {LONGEST_SIGNATURE} fit"
        raise ParameterRefused(f"{scorer.name} cannot be signed: {signature[:80]}... has {excess}.")
    return signature


def measured(scorer: Scorer, examples: Sequence[Example]) -> Sequence[Scores]:
    """The scores of a batch; a missing model is reported as ModelUnfit."""
    try:
        return scorer.score(examples)
    except ScorerError as error:
        raise ModelUnfit(str(error)) from error


@transaction.atomic
def _runs(study: Study, scorer: Scorer) -> list[ScoringRun]:
    """A run for each output, the leader first."""
    signature, judge = signature_of(scorer), judge_record(scorer)
    runs: list[ScoringRun] = []
    for output in scorer.outputs:
        fields = {
            "higher_is_better": scorer.higher_is_better_for(output),
            "is_primary": output in scorer.primary,
            "leader": runs[0] if runs else None,
            "judge": judge,
        }
        run, _ = ScoringRun.objects.update_or_create(
            study=study, metric=output, signature=signature, defaults=fields
        )
        runs.append(run)
    return runs


@transaction.atomic
def _forget_undefined(lease: RunLease, runs: list[ScoringRun]) -> None:
    """Delete all outputs of the candidates of which one is undefined."""
    lease.hold()
    scores = Score.objects.filter(run__in=runs)
    undefined = scores.filter(value=None).values("candidate_id")
    if scores.filter(candidate__in=undefined).delete()[0]:
        count_scores_change(study_id=runs[0].study_id)


def _waiting(study: Study, run: ScoringRun | None) -> list[Group]:
    """The contents that have no score yet; their texts are looked at and let go of."""
    candidates = Candidate.objects.filter(item__study=study)
    waiting = candidates.exclude(scores__run=run) if run else candidates
    read = waiting.select_related("item").order_by("pk").iterator(chunk_size=READ_AT_ONCE)
    return grouped((candidate.pk, content_of(example_of(candidate))) for candidate in read)


def _score(
    groups: list[Group], scorer: Scorer, runs: list[ScoringRun], lease: RunLease
) -> Iterator[bool]:
    """Write the scores of each content, and yield for each candidate whether they were reused."""
    fresh: list[Group] = []
    for chunk in chunks(groups, LOOKED_UP_AT_ONCE):
        stored = _stored_scores(scorer, chunk)
        there = [group for group in chunk if group[0].digest in stored]
        fresh += [group for group in chunk if group[0].digest not in stored]
        if there:
            scores = [stored[content.digest] for content, _ in there]
            yield from _write(lease, runs, there, scores, True)
    for batch in chunks(fresh, scorer.batch_size):
        yield from _write(lease, runs, batch, measured(scorer, _examples(batch)), False)


def _stored_scores(scorer: Scorer, groups: Sequence[Group]) -> dict[str, Scores]:
    """The scores that these contents have under this signature already, in whichever study.

    What was undefined is tried again: a judge that gave no number may give one now.
    """
    rows = Score.objects.filter(
        run__metric__in=scorer.outputs,
        run__signature=signature_of(scorer),
        content__in=[content.digest for content, _ in groups],
    )
    stored: dict[str, Scores] = {}
    for digest, output, value, raw in rows.values_list("content", "run__metric", "value", "raw"):
        if value is not None:
            stored.setdefault(digest, {})[output] = scorers.Score(value, None, raw or None)
    return {
        digest: stored[digest] for digest in stored if len(stored[digest]) == len(scorer.outputs)
    }


def _examples(groups: Sequence[Group]) -> list[Example]:
    """One example of each content, in the order of the groups."""
    keys = [keys[0] for _, keys in groups]
    candidates = Candidate.objects.select_related("item").in_bulk(keys)
    return [example_of(candidates[key]) for key in keys]


def example_of(candidate: Candidate) -> Example:
    """A candidate as a scorer sees it."""
    item = candidate.item
    return Example(
        item=item.key,
        system=candidate.system,
        response=candidate.text,
        context=item.context or None,
        reference=item.reference or None,
        condition=item.condition or None,
    )


def _write(
    lease: RunLease,
    runs: list[ScoringRun],
    groups: Sequence[Group],
    scores: Sequence[Scores],
    were_reused: bool,
) -> list[bool]:
    """Write a batch whole, for all outputs, so that what is there is complete."""
    rows = [
        score_of(run, key, outputs[run.metric], content.digest)
        for (content, keys), outputs in zip(groups, scores, strict=True)
        for key in keys
        for run in runs
    ]
    with transaction.atomic():
        lease.hold()
        Score.objects.bulk_create(rows, batch_size=1000)
        count_scores_change(study_id=runs[0].study_id)
    return [were_reused] * (len(rows) // len(runs))


def score_of(run: ScoringRun, candidate_id: int, score: scorers.Score, content: str = "") -> Score:
    """A score to be written."""
    value = finite(score)
    return Score(
        run=run,
        candidate_id=candidate_id,
        value=None if value.reason else value.value,
        reason=(value.reason or "")[:200],
        raw=value.raw or "",
        content=content,
    )


def finite(score: scorers.Score) -> scorers.Score:
    """The score as it is stored: what is not finite has a reason instead of a value."""
    if math.isfinite(score.value):
        return score._replace(reason=None)
    default = "undefined" if math.isnan(score.value) else f"not finite: {score.value}"
    return scorers.Score(math.nan, score.reason or default, score.raw)


@transaction.atomic
def write_scores(
    *,
    study: Study,
    metric: str,
    signature: str,
    values: Mapping[tuple[str, str], float],
    higher_is_better: bool = True,
    is_primary: bool = True,
    reasons: Mapping[tuple[str, str], str] = MappingProxyType({}),
) -> ScoringRun:
    """Keep scores that were computed elsewhere, by item and candidate key.

    Those the run has already are replaced, and its other scores stay. `reasons` says why a
    value is NaN, where that is known.
    """
    run, _ = ScoringRun.objects.update_or_create(
        study=study,
        metric=metric,
        signature=signature,
        defaults={"higher_is_better": higher_is_better, "is_primary": is_primary},
    )
    candidates = Candidate.objects.filter(item__study=study).select_related("item")
    known = {(candidate.item.key, candidate.key): candidate for candidate in candidates}
    if unknown := sorted(values.keys() - known.keys()):
        item, key = unknown[0]
        raise ValueError(f"values holds '{key}' of '{item}', which study '{study.slug}' has not")
    for batch in chunks([known[pair] for pair in values], 500):
        run.scores.filter(candidate__in=batch).delete()
    Score.objects.bulk_create(
        (
            score_of(run, known[pair].pk, scorers.Score(value, _reason(value, reasons.get(pair))))
            for pair, value in values.items()
        ),
        batch_size=500,
    )
    count_scores_change(study_id=study.pk)
    return run


def _reason(value: float, known: str | None) -> str | None:
    return known or "not computed" if math.isnan(value) else None
