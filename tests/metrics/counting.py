"""A real scorer that is easy to compute by hand, and that can be made to fail."""

from collections.abc import Sequence

from metrics.scorers.interface import Example, Score, Scorer, Scores, sign, undefined


class SwitchedOff(OSError):
    """The machine was switched off."""


class Counting(Scorer):
    """Characters and words of a response; undefined where there is none."""

    name = "counting"
    outputs = ("counting", "counting_words")

    def __init__(self, batch_size: int = 4, fails_at_batch: int | None = None) -> None:
        self.batch_size = batch_size
        self.fails_at_batch = fails_at_batch
        self.seen: list[tuple[str, str]] = []
        self.n_batches = 0

    @property
    def signature(self) -> str:
        return sign("counting", unit="character", version=1)

    def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
        self.n_batches += 1
        if self.n_batches == self.fails_at_batch:
            raise SwitchedOff("E17")
        self.seen += [(example.item, example.system) for example in examples]
        return [_counts(example.response) for example in examples]


class Constant(Counting):
    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score_of_all = score

    def measure(self, examples: Sequence[Example]) -> Sequence[Scores]:
        self.seen += [(example.item, example.system) for example in examples]
        return [dict.fromkeys(self.outputs, self.score_of_all) for _ in examples]


def _counts(text: str) -> Scores:
    if not text:
        return dict.fromkeys(Counting.outputs, undefined("no response"))
    return {"counting": Score(len(text)), "counting_words": Score(len(text.split()))}
