"""Prediction-powered means on a published study: ``python -m benchmarks.prediction_powered``.

Topical-Chat's 60 dialogues of 6 responses, rated by three people each, and G-Eval's 20 replies to
each. Every draw takes as many responses (or whole dialogues) again with replacement, so that the
pool's mean is the truth, and keeps the human ratings of a quarter of them. Printed by aspect: how
often intervals hold the pool's mean, their mean width over that of people alone, and what theory
allows for a judge of that correlation. Then the error of a mean whose items were sent to people
where the judge is expected to err, over that of as many sent with even chances.

The data are not ours to ship: ``--data FOLDER`` holds topical_chat_usr.json and
geval_gpt35_n20.jsonl.
"""

import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from benchmarks.commands import parse_options, say, say_head, say_row
from stats.arguments import Floats, Integers
from stats.inference.active_labels import (
    actively_labelled_mean,
    expected_errors,
    labelling_probabilities,
)
from stats.inference.powered_means import PredictionPowered, prediction_powered_mean

ASPECTS = ("naturalness", "coherence", "engagingness", "groundedness")
KEPT = 0.25
# Times as many for the errors by active choice: they differ from those by chance by a percent.
ACTIVE_DRAWS = 6


@dataclass(frozen=True)
class Responses:
    """Human means, the judge's means and spreads of replies, and the dialogue of each."""

    human: Floats
    judge: Floats
    spread: Floats
    dialogue: Integers

    @property
    def rho(self) -> float:
        return float(np.corrcoef(self.human, self.judge)[0, 1])

    def theory(self) -> float:
        """The width of an interval over that of people alone, by the judge's correlation."""
        return float(np.sqrt(1 - self.rho**2 * (1 - KEPT)))


def responses(folder: Path, aspect: str) -> Responses:
    items = {
        row["item_id"]: row
        for row in json.loads((folder / "topical_chat_usr.json").read_text(encoding="utf-8"))
    }
    with (folder / "geval_gpt35_n20.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    replies = {
        row["item_id"]: np.array(row["scores"], dtype=np.float64)
        for row in rows
        if (row["mode"], row["dim"]) == ("geval", aspect) and row["scores"]
    }
    return Responses(
        human=np.array([items[key]["scores"][aspect] for key in replies], dtype=np.float64),
        judge=np.array([scores.mean() for scores in replies.values()]),
        spread=np.array([scores.std() for scores in replies.values()]),
        dialogue=np.array([items[key]["dialog_id"] for key in replies]),
    )


def drawn(
    pool: Responses, rng: np.random.Generator, *, clustered: bool
) -> tuple[PredictionPowered, float]:
    if clustered:
        names = np.unique(pool.dialogue)
        chosen = rng.choice(names, size=len(names))
        rows = [np.flatnonzero(pool.dialogue == name) for name in chosen]
        at = np.concatenate(rows)
        cluster = np.repeat(np.arange(len(rows)), [len(part) for part in rows])
        kept = rng.permutation(len(rows)) < round(KEPT * len(rows))
        is_labelled = kept[cluster]
    else:
        at = rng.integers(len(pool.human), size=len(pool.human))
        cluster = None
        is_labelled = rng.permutation(len(at)) < round(KEPT * len(at))
    human = np.where(is_labelled, pool.human[at], np.nan)
    return prediction_powered_mean(human, pool.judge[at], clusters=cluster), float(
        pool.human.mean()
    )


def outcome(pool: Responses, n_draws: int, *, clustered: bool, seed: int = 0) -> Floats:
    """Shares of intervals that hold the mean, also of people alone, and the ratio of widths."""
    rng = np.random.default_rng(seed)
    covered, widths = [], []
    for _ in range(n_draws):
        estimate, truth = drawn(pool, rng, clustered=clustered)
        both = (estimate, estimate.people_only)
        covered.append([one.ci_low <= truth <= one.ci_high for one in both])
        widths.append([one.ci_high - one.ci_low for one in both])
    width, people_width = np.mean(widths, axis=0)
    return np.append(np.mean(covered, axis=0), width / people_width)


def active_error(pool: Responses, n_draws: int, *, seed: int = 0) -> float:
    """The root mean square error by active choice, over that of items sent with even chances.

    A quarter of the items is a pilot, from which is learned where the judge errs; of the others,
    as many are sent again.
    """
    rng = np.random.default_rng(seed)
    n = len(pool.human)
    n_pilot = round(KEPT * n)
    squares = {"even": 0.0, "active": 0.0}
    for _ in range(n_draws):
        rest = rng.permutation(n)[n_pilot:]
        pilot = np.where(np.isin(np.arange(n), rest), np.nan, pool.human)
        expected = expected_errors(pilot, pool.judge, pool.spread)
        judge, human = expected.judge[rest], pool.human[rest]
        chances = {
            "even": np.full(len(rest), n_pilot / len(rest)),
            "active": labelling_probabilities(expected.error[rest], budget=n_pilot),
        }
        for name, chance in chances.items():
            sent = np.where(rng.random(len(rest)) < chance, human, np.nan)
            value = actively_labelled_mean(sent, judge, chance).value
            squares[name] += (value - human.mean()) ** 2
    return float(np.sqrt(squares["active"] / squares["even"]))


def main() -> None:
    folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "topical_chat_usr"
    options = parse_options(
        __doc__, data=(str(folder), "the folder of both files"), draws=(5000, "of each aspect")
    )
    pools = {aspect: responses(Path(options.data), aspect) for aspect in ASPECTS}
    say_head(
        *("aspect", "judge's r", "drawn", "holds the mean", "people alone hold it"),
        *("width, of people's", "theory"),
    )
    for (aspect, pool), clustered in product(pools.items(), (False, True)):
        shares = outcome(pool, options.draws, clustered=clustered)
        say_row(
            *(aspect, f"{pool.rho:.2f}", "dialogues" if clustered else "responses"),
            *(f"{share:.3f}" for share in shares),
            "" if clustered else f"{pool.theory():.3f}",
        )
    say()
    say_head("aspect", "error by active choice, of even chances")
    for aspect, pool in pools.items():
        say_row(aspect, f"{active_error(pool, ACTIVE_DRAWS * options.draws):.3f}")


if __name__ == "__main__":
    main()
