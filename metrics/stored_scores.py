"""Scores as rows, written in batches by the process that holds a run's lease."""

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from annotation.flags import count_scores_change
from annotation.models import Candidate, Study
from annotation.score_settings import LONGEST_SIGNATURE
from error_codes import InvalidValue
from metrics.exceptions import ModelUnfit, ParameterRefused, RunBusy, RunTaken, get_code
from metrics.models import Score, ScoringRun
from metrics.scorers import interface as scorers
from metrics.scorers.errors import ScorerError
from metrics.scorers.interface import Example, Scorer
from presentation.numbers import group_values
from work.execution import Lease, heartbeat, lease_term, lock, new_token
from work.models import lapsed


def signature_of(scorer: Scorer, output: str = "") -> str:
    try:
        signature = scorer.signature_for(output) if output else scorer.signature
    except ScorerError as error:
        raise ModelUnfit(str(error), code=get_code(error)) from error
    except ValueError as error:
        raise ParameterRefused(
            f"{scorer.name} cannot be signed: {error}.", code="unsigned"
        ) from error
    if len(signature) > LONGEST_SIGNATURE:
        excess = f"{len(signature)} characters, where {LONGEST_SIGNATURE} fit"
        raise ParameterRefused(
            f"{scorer.name} cannot be signed: {signature[:80]}... has {excess}.", code="unsigned"
        )
    return signature


def score_of(run: ScoringRun, candidate_id: int, score: scorers.Score, content: str = "") -> Score:
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
        raise InvalidValue(
            f"values holds '{key}' of '{item}', which study '{study.slug}' has not",
            code="unknown_candidate",
        )
    for batch in chunks([known[pair] for pair in values], 500):
        run.scores.filter(candidate__in=batch).delete()
    Score.objects.bulk_create(
        (
            score_of(
                run,
                known[pair].pk,
                scorers.Score(value, reasons.get(pair) or "not computed")
                if math.isnan(value)
                else scorers.Score(value),
            )
            for pair, value in values.items()
        ),
        batch_size=500,
    )
    count_scores_change(study_id=study.pk)
    return run


class RunLease(Lease):
    def check(self) -> None:
        """RunTaken where the run is in other hands."""
        if self.is_lost:
            raise RunTaken(f"{self.row}: the run was taken over; what was done is kept.")

    def end(self, state: ScoringRun.State, error: str = "") -> None:
        self.rows().update(state=state, error=error, lease_token="", leased_until=None)


@contextmanager
def leased(run: ScoringRun, *, n_before: int, n_total: int) -> Iterator[RunLease]:
    """Hold a run while it is being scored; how that ends becomes its state."""
    lease = _take(run, n_before, n_total)
    try:
        with heartbeat(lease):
            yield lease
    except BaseException as error:
        lease.end(ScoringRun.State.FAILED, str(error) or type(error).__name__)
        raise
    lease.end(ScoringRun.State.DONE)


@transaction.atomic
def _take(run: ScoringRun, n_before: int, n_total: int) -> RunLease:
    now = timezone.now()
    is_free = ~Q(state=ScoringRun.State.RUNNING) | Q(leased_until=None) | lapsed(now)
    if lock(ScoringRun.objects.filter(is_free, pk=run.pk)) is None:
        raise RunBusy(
            f"{run.metric} is being scored already in study '{run.study.slug}'. Wait for it to "
            "finish, or stop it; if its process was killed, try again in half a minute."
        )
    token = new_token()
    ScoringRun.objects.filter(pk=run.pk).update(
        state=ScoringRun.State.RUNNING,
        error="",
        lease_token=token,
        leased_until=now + lease_term(),
        n_before=n_before,
        n_total=n_total,
        started_at=now,
    )
    return RunLease(run, token)


Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T")

DIGITS = 32


class Content(NamedTuple):
    """What a scorer reads of an example, as a digest, and how much of it there is."""

    digest: str
    n_characters: int


def content_of(example: Example) -> Content:
    """The digest of an example's texts; whose response it is and to which item does not count."""
    texts = (example.response, example.context, example.reference, example.condition)
    digest = sha256(json.dumps(texts).encode()).hexdigest()[:DIGITS]
    return Content(digest, sum(len(text or "") for text in texts))


def grouped(contents: Iterable[tuple[Key, Content]]) -> list[tuple[Content, list[Key]]]:
    """Each content once, with the keys that have it, the longest first.

    The longest batch comes first because it is the one that may not fit into memory, and so
    that the time left is over- and not underestimated.
    """
    keys = group_values((content, key) for key, content in contents)
    return sorted(keys.items(), key=lambda group: (-group[0].n_characters, group[0].digest))


def chunks(things: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(things), size):
        yield things[start : start + size]
