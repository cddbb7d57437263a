"""What a study's cosines are worth: what random words score, and how well encoders agree."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from annotation.models import Item, Study
from metrics.exceptions import ModelUnfit, NothingToScore, get_code
from metrics.frames import score_frame
from metrics.scorers.embedding_controls import r_squared, random_words_control
from metrics.scorers.errors import NoScoreError, ScorerError
from metrics.scorers.scorer import Scorer
from metrics.study_scores import signature_of
from presentation.records import plain_values

ENCODERS = ("embedding", "use")


@dataclass(frozen=True)
class EncoderBias:
    """A metric's mean over random words, beside its mean over the study's responses.

    The first should be near 0; the second is NaN where the study is not scored with it.
    """

    metric: str
    signature: str
    bias: float
    bias_sd: float
    n_references: int
    n_words: int
    seed: int
    mean: float

    def record(self) -> dict[str, Any]:
        return plain_values(asdict(self))


@dataclass(frozen=True)
class EncoderPair:
    """How much of one encoder's scores another's explain, over the responses both have scored."""

    first: str
    second: str
    r_squared: float
    n: int

    def record(self) -> dict[str, Any]:
        return plain_values(asdict(self))


def encoder_bias(*, study: Study, scorer: Scorer, n_words: int = 20, seed: int = 0) -> EncoderBias:
    """Score texts of random words against each of the study's references."""
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
    return EncoderBias(
        metric=scorer.name,
        signature=signature,
        bias=control.bias,
        bias_sd=control.standard_deviation,
        n_references=control.n_texts,
        n_words=n_words,
        seed=seed,
        mean=float(own["value"].mean()),
    )


def encoder_pairs(study: Study, metrics: Sequence[str] = ENCODERS) -> list[EncoderPair]:
    """R squared between each two of the study's runs of these metrics, by their signatures."""
    scores = score_frame(study)
    selected = scores[scores["metric"].isin(metrics)]
    table = selected.pivot(index=["item", "candidate"], columns="signature", values="value")
    runs = list(dict.fromkeys(selected["signature"]))
    return [
        EncoderPair(
            first=first,
            second=second,
            r_squared=r_squared(table[first].tolist(), table[second].tolist()),
            n=len(table[[first, second]].dropna()),
        )
        for first, second in combinations(runs, 2)
    ]


def _references(study: Study) -> list[str]:
    """The study's distinct references, in their order."""
    texts = Item.objects.filter(study=study).exclude(reference="").order_by("position", "pk")
    distinct = dict.fromkeys(texts.values_list("reference", flat=True))
    references = [text for text in distinct if text.strip()]
    if not references:
        message = f"Study '{study.slug}' has no references to compare with."
        raise NothingToScore(message, code="no_references")
    return references
