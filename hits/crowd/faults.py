"""Bad workers of a simulated crowd, each with one fault, by a seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hits.crowd.simulated import Change, SimulatedAnswers

FAULTS = (
    *("random", "straight_line", "fast", "copy_paste", "machine_like"),
    *("colluding", "late"),
)
HOUR_SECONDS = 3600
PASTED = "It is quite similar in style and colour and so I would choose it again."
MACHINE_LIKE = (
    "Overall, the response effectively conveys a coherent tone while also addressing the context.",
    "Furthermore, it aligns well with the request and maintains a nuanced, balanced style.",
    "This option is both clear and coherent; it ensures continuity and showcases key details.",
    "In contrast, it demonstrates a comprehensive grasp of the topic, making it suitable.",
)


def faulty_names(faults: Sequence[str], *, seed: int) -> dict[str, str]:
    """The accounts of bad workers with their faults; colluding ones are two."""
    names = {}
    for fault in faults:
        for part in ("-a", "-b") if fault == "colluding" else ("",):
            names[f"crowd-{seed}-{fault.replace('_', '-')}{part}"] = fault
    return names


class FaultyAnswers:
    """Answers of careful workers, spoilt for those who have a fault."""

    def __init__(self, source: SimulatedAnswers, faults: dict[str, str], *, seed: int) -> None:
        self.source, self.faults, self.seed = source, faults, seed
        self._worked_seconds: defaultdict[str, float] = defaultdict(float)

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        fault = self.faults.get(worker, "")
        # The second account of a pair has what the first one's person says.
        person = f"{worker[:-2]}-a" if fault == "colluding" else worker
        rng = random.Random(f"{self.seed}:{worker}:{page['item']}")
        answer = self.source.answer(person, page, self._change(worker, person, rng))
        seconds = answer["active_seconds"] or 0.0
        self._worked_seconds[worker] += seconds
        if fault == "fast":
            answer["active_seconds"] = seconds / 50
        elif fault in ("copy_paste", "machine_like"):
            _write_reasons(answer, PASTED if fault == "copy_paste" else rng.choice(MACHINE_LIKE))
            is_written = bool(answer["justification"] or answer["reasons"])
            answer["pasted"] = is_written and fault == "copy_paste"
        return answer

    def _change(self, worker: str, person: str, rng: random.Random) -> Change | None:
        """What the worker's fault makes of a careful value."""
        fault = self.faults.get(worker, "")
        is_late = fault == "late" and self._worked_seconds[worker] > HOUR_SECONDS
        if fault == "random" or is_late:
            return lambda low, high, _: rng.randint(low, high)
        if fault == "straight_line":
            place = random.Random(f"{self.seed}:{worker}").uniform(0.3, 0.7)
            return lambda low, high, _: round(low + place * (high - low))
        if fault == "colluding" and worker != person:
            # On short scales a step is no small change.
            return lambda low, high, value: value + (rng.randint(-1, 1) if high - low > 20 else 0)
        return None


def _write_reasons(answer: dict[str, Any], reason: str) -> None:
    """Again and again, until each is no shorter than what stood there."""
    for holder, name in ((answer, "justification"), *((r, "text") for r in answer["reasons"])):
        if holder[name]:
            n = max(len(holder[name]) // len(reason) + 1, 1)
            holder[name] = " ".join([reason] * n)
