"""A crowd for tests, demonstrations and load: what it answers, and sending it to work."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.conf import settings

from annotation.models import Candidate, Item, Study
from annotation.readers.drafts import SubmissionDraft
from hits.crowd.worker import CrowdWorker, Task
from hits.exceptions import CrowdStuck
from hits.models import Batch, Hit
from presentation.progress import Progress, silently

REASONS = (
    "It has the same shape and would be worn on the same occasions.",
    "The colour and the style are close enough to the target.",
    "It would serve me equally well, though the details differ.",
    "None of the others comes near the target in shape and colour.",
)


class AnswerSource(Protocol):
    """Where the answers of a crowd come from."""

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        """What this worker would post for a page: the JSON of its `answer` field."""
        ...


def _posted(
    page: dict[str, Any],
    values: dict[tuple[str, str], float],
    justification: str = "",
    seconds: Mapping[tuple[str, str], float] | None = None,
) -> dict[str, Any]:
    """An answer in the page's own format; `values` go by blind key and question.

    Without `seconds` nobody knows how long each took.
    """
    order, times = page["candidates"], seconds or {}
    return {
        "version": page["version"],
        "item": page["item"],
        "order": order,
        "judgments": [
            {
                "candidate": candidate,
                "question": question,
                "value": value,
                "seconds": times.get((candidate, question)),
            }
            for (candidate, question), value in values.items()
        ],
        "justification": justification,
        "comment": "",
        "active_seconds": sum(times.values()) if times else None,
        "pasted": False,
    }


class RecordedAnswers:
    """Answers that were given before, such as those of a recorded batch."""

    def __init__(self, study: Study, drafts: Iterable[SubmissionDraft]) -> None:
        self.by_item: dict[str, list[SubmissionDraft]] = {}
        for draft in drafts:
            self.by_item.setdefault(draft.item, []).append(draft)
        self.items = {str(key): name for key, name in study.items.values_list("pk", "key")}
        candidates = Candidate.objects.filter(item__study=study)
        self.candidates = {
            (str(item), blind): key
            for item, blind, key in candidates.values_list("item", "blind_key", "key")
        }

    def plan(self, batch: Batch) -> dict[str, list[str]]:
        """The open HITs that each recorded worker is to do, by the worker's name in the record."""
        open_hits = Hit.objects.of(batch).collectable()
        hits = dict(open_hits.values_list("item__key", "hit_id"))
        work: dict[str, list[str]] = {}
        for item, drafts in self.by_item.items():
            for draft in drafts:
                if item in hits:
                    work.setdefault(draft.identity or draft.annotator, []).append(hits[item])
        return work

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        item = self.items[page["item"]]
        drafts = self.by_item.get(item, [])
        draft = next((d for d in drafts if worker in (d.identity, d.annotator)), None)
        if draft is None:
            raise CrowdStuck(f"The record has no answer of '{worker}' for item '{item}'.")
        recorded = {(j.candidate, j.question): j.value for j in draft.judgments}
        asked = [(key, asked["name"]) for key in page["candidates"] for asked in page["questions"]]
        names = {pair: (self.candidates[page["item"], pair[0]], pair[1]) for pair in asked}
        for candidate, question in names.values():
            if (candidate, question) not in recorded:
                raise CrowdStuck(
                    f"The record of '{worker}' has no {question} of '{candidate}' in item '{item}'."
                )
        values = {pair: recorded[name] for pair, name in names.items()}
        return _posted(page, values, draft.justification)


class SimulatedAnswers:
    """A seeded model of annotators.

    A candidate is as good as the words it shares with the item's reference (or, among
    products, with the target's title); an annotator adds a bias and noise of their own.
    It has no other claim to be like people.
    """

    def __init__(self, study: Study, *, seed: int, noise: float = 0.15) -> None:
        self.seed, self.noise = seed, noise
        items = study.items.prefetch_related("candidates")
        self.shown = {
            (str(item.pk), candidate.blind_key): (item, candidate)
            for item in items
            for candidate in item.candidates.all()
        }

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        values, seconds = {}, {}
        for question in page["questions"]:
            bias = self._random(worker, question["name"]).gauss(0, self.noise / 2)
            for key in page["candidates"]:
                item, candidate = self.shown[page["item"], key]
                names = (worker, question["name"], item.key, candidate.key)
                error = self._random(*names).gauss(0, self.noise)
                share = _shared_words(candidate, item) + bias + error
                low, high = question["min"], question["max"]
                values[key, question["name"]] = _on_scale(low + share * (high - low), low, high)
                seconds[key, question["name"]] = self._seconds(*names)
        return _posted(page, values, self._reason(worker, page), seconds)

    def _seconds(self, worker: str, *judged: str) -> float:
        """Each has a pace, and takes more or less time than that for a judgment."""
        pace = self._random(worker, "pace").uniform(3, 12)
        return round(pace * self._random(worker, *judged, "time").lognormvariate(0, 0.4), 1)

    def _reason(self, worker: str, page: dict[str, Any]) -> str:
        """Sentences until they are as long as the page asks for; none where it asks for none."""
        item, _ = self.shown[page["item"], page["candidates"][0]]
        chance = self._random(worker, item.key)
        reason = ""
        while len(reason) < page["justification_min_length"]:
            reason = f"{reason} {chance.choice(REASONS)}".strip()
        return reason

    def _random(self, *names: str) -> random.Random:
        return random.Random(":".join((str(self.seed), *names)))


def _on_scale(value: float, low: float, high: float) -> float:
    """The nearest value the page's control can take: whole steps from its low end."""
    steps = round(min(max(value, low), high) - low)
    return float(low + min(steps, math.floor(high - low)))


def _shared_words(candidate: Candidate, item: Item) -> float:
    wanted = set((item.reference or item.context).lower().split())
    found = set(candidate.text.lower().split())
    return len(wanted & found) / len(wanted | found) if wanted | found else 0.0


@dataclass(frozen=True)
class Replayed:
    """How much work the crowd did, and how many HITs it could not have."""

    n_workers: int
    n_submitted: int
    n_gone: int

    def __str__(self) -> str:
        return (
            f"{self.n_workers} workers submitted {self.n_submitted} assignments"
            f" ({self.n_gone} HITs were taken or done already)."
        )


def replay_plan(
    *,
    plan: dict[str, list[str]],
    source: AnswerSource,
    site_url: str,
    prefix: str = "",
    progress: Progress = silently,
) -> Replayed:
    """Let each worker do the HITs planned for them, in order."""
    submitted = 0
    workers = {name: _worker(site_url, prefix + name) for name in plan}
    steps = [(name, hit_id) for name, hits in plan.items() for hit_id in hits]
    for name, hit_id in progress(steps, len(steps)):
        task = workers[name].accept(hit_id)
        if task is not None:
            workers[name].submit(task, source.answer(name, task.page))
            submitted += 1
    return Replayed(len(workers), submitted, len(steps) - submitted)


def crowd_names(n_workers: int, *, seed: int) -> list[str]:
    """The accounts of a simulated crowd; another seed is another crowd."""
    return [f"crowd-{seed}-{number}" for number in range(1, n_workers + 1)]


def replay_group(
    *,
    hit_type_id: str,
    names: Sequence[str],
    source: AnswerSource,
    site_url: str,
    total: int,
    progress: Progress = silently,
) -> Replayed:
    """Let workers take turns at whatever the group has next, until there is nothing left."""
    workers = {name: _worker(site_url, name) for name in names}
    tasks = _turns(workers, hit_type_id)
    submitted = 0
    for name, task in progress(tasks, total):
        workers[name].submit(task, source.answer(name, task.page))
        submitted += 1
    return Replayed(len(workers), submitted, 0)


def _turns(workers: dict[str, CrowdWorker], hit_type_id: str) -> Iterable[tuple[str, Task]]:
    waiting = list(workers)
    while waiting:
        for name in list(waiting):
            task = workers[name].accept_next(hit_type_id)
            if task is None:
                waiting.remove(name)
            else:
                yield name, task


def _worker(site_url: str, name: str) -> CrowdWorker:
    worker = CrowdWorker(site_url, name, secret=settings.SECRET_KEY)
    worker.arrive()
    return worker
