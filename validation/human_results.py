"""What people's judgments of a study say by themselves: computed, and stored as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.db import models, transaction
from django.db.models import Max

from annotation.agreement import judged_protocols, rounds_of
from annotation.comparisons import wins
from annotation.frames import judgment_frame
from annotation.models import Candidate, Question, Study, Submission
from annotation.protocols.versions import numbered_version
from presentation.progress import Progress, silently
from validation.analysis.human_results import (
    CONDITION,
    PREFERRED,
    PROTOCOL,
    UNFLAGGED,
    LowestCandidate,
    QuestionResult,
    QuestionScale,
    question_result,
)
from validation.models import (
    HumanResults,
    HumanResultsBin,
    HumanResultsPair,
    HumanResultsQuestion,
    HumanResultsSystem,
    LowestRated,
)

if TYPE_CHECKING:
    import pandas as pd


FORM = 6
"""Of the rows, and how their numbers are reckoned; those of another form are out of date."""
AT_ONCE = 500
MOST_PARTS = 12
Part = tuple[str, str, "pd.DataFrame"]


def human_results_fingerprint(study: Study) -> str:
    """What the results depend on: the count of changes of the judgments of the loaded study."""
    return sha256(repr(("results", FORM, study.pk, study.judgments_version)).encode()).hexdigest()


def current_human_results(study: Study) -> HumanResults | None:
    """The results of the study as it was loaded; None where they are not computed yet."""
    results = HumanResults.objects.of(study)
    return results.filter(fingerprint=human_results_fingerprint(study)).last()


def compute_human_results(study: Study, progress: Progress = silently) -> HumanResults:
    """Compute the results of every question that was judged in the first round, and keep them as
    the study's next version."""
    # Loaded first: what changes meanwhile makes the version out of date, and never wrong.
    study = Study.objects.get(pk=study.pk)
    round = next(iter(rounds_of(study)), 1)
    frame = _of_round(judgment_frame(study), round)
    submissions = Submission.objects.of(study).accepted().filter(round=round)
    n_flagged = submissions.flagged().count()
    parts = list(_parts(study, frame, round))
    judged = [one for one in study.questions.all() if (frame["question"] == one.name).any()]
    results = [_result(one, frame, parts) for one in progress(judged, len(judged))]
    return _store(study, round, n_flagged, results)


def _result(question: Question, frame: pd.DataFrame, parts: Sequence[Part]) -> QuestionResult:
    scale = QuestionScale(
        question.name,
        question.kind,
        question.level,
        question.scale_min,
        question.scale_max,
        tuple(question.categories),
    )
    of_parts = [(scope, by, _under(question, rows)) for scope, by, rows in parts]
    who_won = partial(wins, question) if scale.measure == PREFERRED else None
    return question_result(scale, _under(question, frame), of_parts, who_won)


def _under(question: Question, frame: pd.DataFrame) -> pd.DataFrame:
    return frame[(frame["question"] == question.name) & frame["value"].notna()]


def _of_round(frame: pd.DataFrame, round: int) -> pd.DataFrame:
    return frame[frame["round"] == round]


def _parts(study: Study, frame: pd.DataFrame, round: int) -> Iterator[Part]:
    """Without flagged work, by condition and by version of the protocol, where there is more."""
    import pandas as pd

    flagged = Submission.objects.of(study).accepted().flagged().filter(round=round)
    names = list(flagged.values_list("annotator__pseudonym", "item__key"))
    if names:
        passes = pd.MultiIndex.from_frame(frame[["annotator", "item"]].astype(str))
        yield UNFLAGGED, "", frame[~passes.isin(pd.MultiIndex.from_tuples(names))]
    conditions = sorted(map(str, frame["condition"].unique()))
    if 1 < len(conditions) <= MOST_PARTS:
        for name in conditions:
            yield CONDITION, name, frame[frame["condition"] == name]
    numbers = judged_protocols(study, round=round)
    if len(numbers) > 1:
        for number in numbers[-MOST_PARTS:]:
            of_version = judgment_frame(study, protocol=numbered_version(study, number))
            yield PROTOCOL, str(number), _of_round(of_version, round)


@transaction.atomic
def _store(
    study: Study, round: int, n_flagged: int, results: Sequence[QuestionResult]
) -> HumanResults:
    """Store the rows as the study's next version, instead of those before."""
    Study.objects.select_for_update().get(pk=study.pk)
    before = HumanResults.objects.of(study)
    last = before.aggregate(last=Max("number"))["last"] or 0
    before.delete()
    version = HumanResults.objects.create(
        study=study,
        number=last + 1,
        fingerprint=human_results_fingerprint(study),
        round=round,
        n_flagged=n_flagged,
    )
    _write(version, HumanResultsQuestion, (_question_row(one) for one in results))
    _write(version, HumanResultsSystem, _part_rows(results, "systems"))
    _write(version, HumanResultsPair, _part_rows(results, "pairs"))
    bins = ({"question": one.scale.question} | asdict(row) for one in results for row in one.bins)
    _write(version, HumanResultsBin, bins)
    _write(version, LowestRated, chain.from_iterable(_lowest_rows(study, one) for one in results))
    return version


def _write(
    version: HumanResults, model: type[models.Model], rows: Iterator[dict[str, Any]]
) -> None:
    objects = [model(version=version, **row) for row in rows]
    model._default_manager.bulk_create(objects, batch_size=AT_ONCE)


def _part_rows(results: Sequence[QuestionResult], name: str) -> Iterator[dict[str, Any]]:
    """The systems, or the pairs, of every part of every question."""
    for result in results:
        for part in result.parts:
            for row in getattr(part, name):
                yield {"scope": part.scope, "by": part.by} | asdict(row)


def _question_row(result: QuestionResult) -> dict[str, Any]:
    scale = result.scale
    return {
        "question": scale.question,
        "measure": scale.measure,
        "comparison": scale.comparison,
        "scale_low": scale.low,
        "scale_high": scale.high,
        "n_judgments": result.n_judgments,
        "n_items": result.n_items,
        "n_annotators": result.n_annotators,
        "n_items_with": result.n_items_with,
    }


def _lowest_rows(study: Study, result: QuestionResult) -> Iterator[dict[str, Any]]:
    """Candidates by their keys; one that has gone meanwhile is left out."""
    keys = _keys_of(study, result.lowest)
    for row in result.lowest:
        if (pk := keys.get((row.item, row.candidate))) is not None:
            yield {
                "question": result.scale.question,
                "system": row.system,
                "rank": row.rank,
                "candidate_id": pk,
                "mean": row.mean,
                "n": row.n,
            }


def _keys_of(study: Study, rows: Sequence[LowestCandidate]) -> dict[tuple[str, str], int]:
    candidates = Candidate.objects.filter(
        item__study=study, item__key__in={row.item for row in rows}
    )
    return {(item, key): pk for item, key, pk in candidates.values_list("item__key", "key", "pk")}
