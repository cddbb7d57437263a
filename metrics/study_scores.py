"""Scoring a study: each text once per signature, batch by batch, so that it can be resumed."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q
from django.utils.translation import gettext as _, ngettext

from annotation.flags import count_scores_change
from annotation.models import Candidate, Study
from error_codes import CodedText
from metrics.exceptions import MetricUnknown, ModelUnfit, NothingToScore, ParameterRefused, get_code
from metrics.models import (
    Score,
    ScoringRun,
    unread_text,
)
from metrics.scorers import interface as scorers
from metrics.scorers.errors import ScorerError, ScoringWarning
from metrics.scorers.interface import Example, Scorer, Scores
from metrics.scorers.judges.budget import Estimate
from metrics.scorers.judges.grade import EndpointJudge
from metrics.scorers.registry import SCORERS, build
from metrics.stored_scores import (
    Content,
    RunLease,
    chunks,
    content_of,
    grouped,
    leased,
    score_of,
    signature_of,
)
from metrics.study_judges import count_replies, is_judge, judge_record, judges_client, prepare
from presentation.numbers import count_of
from presentation.progress import Progress, silently

LOOKED_UP_AT_ONCE = 500
READ_AT_ONCE = 2000
# A content, and the keys of the candidates that have it.
Group = tuple[Content, list[int]]


@dataclass(frozen=True)
class Scored:
    """What one scoring run wrote, how much of it others had computed, what it found done, and how
    many of all are undefined, most often for this reason; and, of a judge, how many replies the
    scores rest on, and how many of them have no score, by the reason's code."""

    metric: str
    signature: str
    n_scored: int
    n_known: int
    n_reused: int = 0
    n_undefined: int = 0
    reason: str = ""
    n_replies: int = 0
    unread: Mapping[str, int] = field(default_factory=dict)
    warnings: Sequence[CodedText] = ()

    def __str__(self) -> str:
        scored = ngettext("{n:,} candidate scored", "{n:,} candidates scored", self.n_scored)
        parts = [scored.format(n=self.n_scored)]
        if self.n_reused:
            parts.append(
                _("{n:,} of them from scores stored before of the same text").format(
                    n=self.n_reused
                )
            )
        if self.n_known:
            parts.append(_("{n:,} were scored already").format(n=self.n_known))
        if self.n_undefined:
            text = ngettext(
                "{n:,} is undefined: {reason}", "{n:,} are undefined: {reason}", self.n_undefined
            )
            parts.append(text.format(n=self.n_undefined, reason=self.reason))
        if unread := unread_text(self.n_replies, self.unread):
            parts.append(unread)
        scored_text = f"{self.metric}: {', '.join(parts)} ({self.signature})."
        return " ".join([scored_text, *self.warnings])


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
        raise refused(f"{error}.", code=get_code(error)) from error
    except ScorerError as error:
        raise ModelUnfit(f"{name}: {error}", code=get_code(error)) from error


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
    with _collected_warnings() as found:
        prepare(scorer)
        runs = _runs(study, scorer)
        n_before = runs[0].scores.count()
        with leased(runs[0], n_before=n_before, n_total=total) as lease:
            if retry_undefined:
                _forget_undefined(lease, runs)
            groups = example_groups(study, runs[0])
            n_waiting = sum(len(keys) for _, keys in groups)
            try:
                steps = progress(_score(groups, scorer, runs, lease), n_waiting)
                n_reused = sum(was_reused for was_reused in steps)
            finally:
                _store_warnings(runs[0], found, is_resumed=n_before > 0)
    n_undefined, reason = _undefined(runs[0])
    return Scored(
        metric=scorer.name,
        signature=runs[0].signature,
        n_scored=n_waiting,
        n_known=total - n_waiting,
        n_reused=n_reused,
        n_undefined=n_undefined,
        reason=reason,
        warnings=runs[0].coded_warnings,
        **_counted_replies(runs[0]),
    )


# By a warning's code, how many texts it is about, and of how many.
Warned = dict[str, list[int]]


@contextmanager
def _collected_warnings() -> Iterator[Warned]:
    """What the scorer warns of meanwhile, which is shown as usual too."""
    found: Warned = {}
    show = warnings.showwarning

    def note(message: Warning | str, *arguments: Any, **options: Any) -> None:
        if isinstance(message, ScoringWarning):
            n_texts, n_all = found.get(message.code, [0, 0])
            found[message.code] = [n_texts + message.n_texts, n_all + message.n_all]
        show(message, *arguments, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("always", ScoringWarning)
        warnings.showwarning = note
        yield found


def _store_warnings(run: ScoringRun, found: Warned, *, is_resumed: bool) -> None:
    before: Warned = run.warnings if is_resumed else {}
    run.warnings = {
        code: [
            sum(counts)
            for counts in zip(*(each.get(code, [0, 0]) for each in (before, found)), strict=True)
        ]
        for code in {*before, *found}
    }
    run.save(update_fields=["warnings"])


def _undefined(run: ScoringRun) -> tuple[int, str]:
    rows = Score.objects.filter(run=run, value=None).order_by().values_list("reason")
    counts = list(rows.annotate(n=Count("pk")).order_by("-n", "reason"))
    return (sum(n for _reason, n in counts), counts[0][0]) if counts else (0, "")


def _counted_replies(run: ScoringRun) -> dict[str, Any]:
    if run.judge is None:
        return {}
    counts = count_replies(run)
    run.judge |= counts
    run.save(update_fields=["judge"])
    return counts


def measured(scorer: Scorer, examples: Sequence[Example]) -> Sequence[Scores]:
    try:
        return scorer.score(examples)
    except ScorerError as error:
        raise ModelUnfit(str(error), code=get_code(error)) from error


@transaction.atomic
def _runs(study: Study, scorer: Scorer) -> list[ScoringRun]:
    judge = judge_record(scorer)
    runs: list[ScoringRun] = []
    for output in scorer.outputs:
        fields = {
            "higher_is_better": scorer.higher_is_better_for(output),
            "is_primary": output in scorer.primary,
            "leader": runs[0] if runs else None,
            "judge": judge,
        }
        run, _ = ScoringRun.objects.update_or_create(
            study=study, metric=output, signature=signature_of(scorer, output), defaults=fields
        )
        runs.append(run)
    return runs


@transaction.atomic
def _forget_undefined(lease: RunLease, runs: list[ScoringRun]) -> None:
    lease.hold()
    scores = Score.objects.filter(run__in=runs)
    if scores.filter(candidate__in=scores.filter(value=None).values("candidate_id")).delete()[0]:
        count_scores_change(study_id=runs[0].study_id)


def example_groups(study: Study, run: ScoringRun | None) -> list[Group]:
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
        stored = scores_of_contents(runs[0].study, scorer, chunk)
        there = [group for group in chunk if group[0].digest in stored]
        fresh += [group for group in chunk if group[0].digest not in stored]
        if there:
            scores = [stored[content.digest] for content, _ in there]
            yield from _write(lease, runs, there, scores, True)
    for batch in chunks(fresh, scorer.batch_size):
        yield from _write(lease, runs, batch, measured(scorer, examples_of(batch)), False)


def scores_of_contents(study: Study, scorer: Scorer, groups: Sequence[Group]) -> dict[str, Scores]:
    """The scores that these contents have under this signature already, in whichever study; a
    judge's, whose replies are stored with them, in those of the same team or owner alone.

    What was undefined is tried again: a judge that gave no number may give one now.
    """
    signatures = {output: signature_of(scorer, output) for output in scorer.outputs}
    rows = Score.objects.filter(
        run__metric__in=scorer.outputs,
        run__signature__in=set(signatures.values()),
        content__in=[content.digest for content, _ in groups],
    )
    if is_judge(scorer.name):
        own = Q(run__study__team=study.team_id)
        rows = rows.filter(own if study.team_id else own & Q(run__study__owner=study.owner_id))
    stored: dict[str, Scores] = {}
    columns = ("content", "run__metric", "run__signature", "value", "raw")
    for digest, output, signature, value, raw in rows.values_list(*columns):
        if value is not None and signature == signatures[output]:
            stored.setdefault(digest, {})[output] = scorers.Score(value, None, raw or None)
    return {
        digest: stored[digest] for digest in stored if len(stored[digest]) == len(scorer.outputs)
    }


def examples_of(groups: Sequence[Group]) -> list[Example]:
    keys = [keys[0] for _, keys in groups]
    candidates = Candidate.objects.select_related("item").in_bulk(keys)
    return [example_of(candidates[key]) for key in keys]


def example_of(candidate: Candidate) -> Example:
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


def plan_scoring(*, study: Study, scorer: Scorer) -> Plan:
    """What `score_study` would compute, without computing or writing anything."""
    prepare(scorer, only_estimates=True)
    signature = signature_of(scorer)
    known = ScoringRun.objects.of(study).filter(metric=scorer.name, signature=signature).first()
    groups = example_groups(study, known)
    stored = {
        digest
        for chunk in chunks(groups, LOOKED_UP_AT_ONCE)
        for digest in scores_of_contents(study, scorer, chunk)
    }
    fresh = [group for group in groups if group[0].digest not in stored]
    n_candidates = Candidate.objects.filter(item__study=study).count()
    n_waiting = sum(len(keys) for _, keys in groups)
    examples = tuple(
        example for chunk in chunks(fresh, READ_AT_ONCE) for example in examples_of(chunk)
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
    try:
        return scorer.estimate(examples) if isinstance(scorer, EndpointJudge) else None
    except ScorerError as error:
        raise ModelUnfit(f"{scorer.name}: {error}", code=get_code(error)) from error
