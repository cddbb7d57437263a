"""What scoring a study would have to do, before any of it is done."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from annotation.models import Candidate, Study
from metrics.exceptions import ModelUnfit, get_code
from metrics.models import ScoringRun
from metrics.scorers.errors import ScorerError
from metrics.scorers.judges.budget import Estimate
from metrics.scorers.judges.grade import EndpointJudge
from metrics.scorers.scorer import Example, Scorer
from metrics.stored_scores import chunks
from metrics.study_judges import prepare
from metrics.study_scores import (
    LOOKED_UP_AT_ONCE,
    READ_AT_ONCE,
    example_groups,
    examples_of,
    scores_of_contents,
    signature_of,
)
from presentation.numbers import count_of


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
    """What computing the scores would take of an endpoint; None where there is none."""
    try:
        return scorer.estimate(examples) if isinstance(scorer, EndpointJudge) else None
    except ScorerError as error:
        raise ModelUnfit(f"{scorer.name}: {error}", code=get_code(error)) from error
