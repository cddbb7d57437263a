"""Simulated studies with careful annotators and one of each fault, as evidence for flags.

What careful ones are like is stated in docs/quality.md; it was not fitted to the flags.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from stats.quality import Evidence, band_failed, degraded_failed, repeat_failed

N_CAREFUL, N_ITEMS, N_CANDIDATES, N_REPLIES, CHUNK = 16, 288, 4, 5, 12
FAULTS = {
    "random": "answers at random",
    "straight_line": "moves every line to one place",
    "fast": "reads nothing, and follows the text a little",
    "copy_paste": "rates with care, and pastes one reason",
    "machine_like": "rates with care, and lets a machine write",
    "colluding": "two accounts with one person's ratings",
    "late": "careful for an hour, then at random",
}
NAMES = [f"careful-{number:02}" for number in range(N_CAREFUL)] + [
    *("random", "straight_line", "fast", "copy_paste", "machine_like"),
    *("colluding-a", "colluding-b", "late"),
]
KINDS = ("gold", "repeat", "degraded", "instructed")
# So that who works on 60 pages meets ten checks.
N_CHECKED_ITEMS = N_ITEMS * 10 // 60
HOUR_SECONDS = 3600.0
OPENINGS = ("", "", "i think ", "for me ", "to me ", "well ", "hm ", "honestly ", "this time ")
SUBJECTS = (
    *("the answer", "A", "the second one", "it", "the tone", "the last one", "this reply"),
    *("the first", "what it says", "the wording", "her question", "the joke", "the end of it"),
)
VERBS = (
    *("is about", "fits", "misses", "sounds like", "goes off", "repeats", "ignores", "knows"),
    *("does not get", "is too long for", "answers", "contradicts", "is rude about", "helps with"),
)
OBJECTS = (
    *("what was asked", "the film they talked about", "the topic", "a real person", "the weather"),
    *("the question on dogs", "nothing much", "the earlier turn", "his trip to rome", "the price"),
    *("the recipe", "her job", "the point", "the match last week", "a different country"),
)
CLOSINGS = ("", "", " so ok", " but short", " and thats it", " imo", ", which is odd", " again")
MACHINE = (
    "Overall, the response {a} conveys {b}, making it {c} in this context.",
    "The response effectively maintains {b} while also addressing {a}, demonstrating {c}.",
    "Furthermore, it aligns well with {b} and provides a {c} treatment of {a}.",
    "This reply is both clear and coherent; it ensures {b} and showcases {a} in a {c} way.",
    "In contrast, it demonstrates {a}, yet maintains a {c} and comprehensive sense of {b}.",
)
MACHINE_PARTS = {
    "a": ("the user's intent", "a friendly stance", "key details", "the topic", "the request"),
    "b": ("a warm tone", "the dialogue's flow", "a natural style", "context", "the register"),
    "c": ("nuanced", "engaging", "balanced", "coherent", "suitable", "thoughtful"),
}


@dataclass(frozen=True)
class SimulatedStudy:
    evidence: Evidence
    faults: dict[str, str]


def simulated_study(seed: int, noise: float = 1.0) -> SimulatedStudy:
    rng = np.random.default_rng(seed)
    who, item = _assignments(rng)
    quality = np.clip(rng.normal(58, 22, (N_ITEMS, N_CANDIDATES)), 0, 100)
    words = rng.integers(120, 320, N_ITEMS)
    people = _People.drawn(rng, noise)
    values = people.careful_values(rng, who, quality[item])
    seconds = people.seconds(rng, who, words[item])
    started = _started(who, seconds)
    is_late = (who == NAMES.index("late")) & (started > HOUR_SECONDS)
    is_random = (who == NAMES.index("random")) | is_late
    values[is_random] = rng.integers(0, 101, (int(is_random.sum()), N_CANDIDATES))
    seconds[is_random] *= 0.6
    line, fast = who == NAMES.index("straight_line"), who == NAMES.index("fast")
    values[line] = np.clip(rng.integers(30, 80) + rng.integers(-1, 2, values[line].shape), 0, 100)
    values[fast] = np.clip(0.4 * values[fast] + rng.normal(33, 20, values[fast].shape), 0, 100)
    seconds[fast] = words[item[fast]] / 10 * rng.uniform(0.3, 1.1, int(fast.sum()))
    _copy(rng, values, who, item)
    values = values.round()
    checks = _checks(rng, people, who, item, values, is_random, line, fast)
    evidence = Evidence(
        checks=checks,
        ratings=_ratings(who, item, values, started),
        pages=pd.DataFrame(
            {"annotator": _named(who), "page": item, "seconds": seconds, "words": words[item]}
        ),
        reasons=_reasons(rng),
    )
    faults = {name: name.split("-")[0] for name in NAMES if not name.startswith("careful")}
    return SimulatedStudy(evidence, faults)


def _assignments(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Five annotators an item, about sixty items an annotator, nobody twice on one."""
    chunks = [rng.permutation(N_ITEMS).reshape(-1, CHUNK) for _ in range(N_REPLIES)]
    item = np.concatenate([chunk.ravel() for chunk in chunks])
    who = np.tile(np.repeat(np.arange(len(NAMES)), CHUNK), N_REPLIES)
    _, first = np.unique(who * N_ITEMS + item, return_index=True)
    first.sort()
    return who[first], item[first]


@dataclass(frozen=True)
class _People:
    bias: np.ndarray
    stretch: np.ndarray
    noise: np.ndarray
    lapse: np.ndarray
    pace: np.ndarray

    @classmethod
    def drawn(cls, rng: np.random.Generator, noise: float) -> Self:
        n = len(NAMES)
        pace = rng.uniform(0.6, 1.4, n)
        # Slow enough to be at work after an hour.
        pace[NAMES.index("late")] = 1.1
        return cls(
            bias=rng.normal(0, 7, n),
            stretch=rng.uniform(0.75, 1.25, n),
            noise=noise * rng.uniform(6, 16, n),
            lapse=rng.uniform(0, 0.04, n),
            pace=pace,
        )

    def careful_values(
        self, rng: np.random.Generator, who: np.ndarray, quality: np.ndarray
    ) -> np.ndarray:
        of = (slice(None), None)
        centre = 50 + self.stretch[who][of] * (quality - 50) + self.bias[who][of]
        values = np.clip(rng.normal(centre, self.noise[who][of]), 0, 100)
        lapses = rng.random(values.shape) < self.lapse[who][of]
        return np.where(lapses, rng.uniform(0, 100, values.shape), values)

    def seconds(self, rng: np.random.Generator, who: np.ndarray, words: np.ndarray) -> np.ndarray:
        # At about 240 words a minute, and half a minute to answer.
        reading = words / 4.0 * self.pace[who] * rng.lognormal(0, 0.35, len(who))
        answering = 35 * self.pace[who] * rng.lognormal(0, 0.4, len(who))
        return np.asarray(reading + answering)


def _started(who: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    started = np.zeros(len(who))
    for number in range(len(NAMES)):
        own = who == number
        started[own] = np.cumsum(seconds[own]) - seconds[own]
    return started


def _copy(rng: np.random.Generator, values: np.ndarray, who: np.ndarray, item: np.ndarray) -> None:
    first, second = (NAMES.index(f"colluding-{letter}") for letter in "ab")
    row_of = {page: row for row, page in enumerate(item) if who[row] == first}
    for row in np.flatnonzero(who == second):
        if (other := row_of.get(item[row])) is not None:
            values[row] = np.clip(values[other] + rng.integers(-1, 2, N_CANDIDATES), 0, 100)


def _checks(
    rng: np.random.Generator,
    people: _People,
    who: np.ndarray,
    item: np.ndarray,
    values: np.ndarray,
    is_random: np.ndarray,
    line: np.ndarray,
    fast: np.ndarray,
) -> pd.DataFrame:
    kind_of = {
        page: KINDS[number % len(KINDS)]
        for number, page in enumerate(rng.choice(N_ITEMS, N_CHECKED_ITEMS, replace=False))
    }
    known = {page: float(rng.choice([10, 85])) for page in kind_of}
    rows = []
    for row in np.flatnonzero(np.isin(item, list(kind_of))):
        page, person = item[row], who[row]
        kind, first, right = kind_of[page], values[row, 0], known[page]
        noise, lapses = rng.normal(0, people.noise[person]), rng.random() < people.lapse[person]
        if is_random[row] or lapses:
            given = float(rng.integers(0, 101))
        elif line[row]:
            given = float(np.clip(first + rng.integers(-1, 2), 0, 100))
        elif fast[row]:
            given = float(np.clip(rng.normal(52, 22), 0, 100).round())
        else:
            aim = {
                "gold": right + people.bias[person] + noise,
                "repeat": first + noise / 2,
                "degraded": first - 35 + noise,
                "instructed": right,
            }
            given = float(np.clip(aim[kind], 0, 100).round())
        failed = {
            "gold": band_failed(given, right, 25),
            "repeat": repeat_failed(first, given, 20),
            "degraded": degraded_failed(given, first, lowest=0),
            "instructed": band_failed(given, right, 5),
        }
        rows.append((NAMES[person], page, failed[kind]))
    return pd.DataFrame(rows, columns=["annotator", "check", "is_failed"])


def _ratings(
    who: np.ndarray, item: np.ndarray, values: np.ndarray, started: np.ndarray
) -> pd.DataFrame:
    repeated = (np.repeat(each, N_CANDIDATES) for each in (who, item, started))
    people, pages, order = repeated
    unit = pages * N_CANDIDATES + np.tile(np.arange(N_CANDIDATES), len(who))
    columns = {"annotator": _named(people), "page": pages, "unit": unit, "order": order}
    plain = {"question": 0, "position": np.nan, "is_compared": False}
    return pd.DataFrame({**columns, **plain, "value": values.ravel() / 100})


def _named(who: np.ndarray) -> np.ndarray:
    return np.array(NAMES, dtype=object)[who]


def _reasons(rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for name in NAMES:
        pasted = _human(rng)
        while len(pasted.split()) < 6:
            pasted = _human(rng)
        for _ in range(12):
            if name == "copy_paste":
                text = pasted
            else:
                text = _by_machine(rng) if name == "machine_like" else _human(rng)
            rows.append((name, text))
    return pd.DataFrame(rows, columns=["annotator", "text"])


def _human(rng: np.random.Generator) -> str:
    parts = (OPENINGS, SUBJECTS, VERBS, OBJECTS, CLOSINGS)
    opening, subject, verb, what, closing = (part[rng.integers(len(part))] for part in parts)
    return f"{opening}{subject} {verb} {what}{closing}"


def _by_machine(rng: np.random.Generator) -> str:
    parts = {key: each[rng.integers(len(each))] for key, each in MACHINE_PARTS.items()}
    return MACHINE[rng.integers(len(MACHINE))].format(**parts)
