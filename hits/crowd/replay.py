"""A crowd for tests, demonstrations and load: sending it to work, with answers given before."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import MappingProxyType
from typing import Any, Protocol

from django.conf import settings

from annotation.models import Candidate, Study
from annotation.readers.drafts import SubmissionDraft
from hits.crowd.worker import CrowdWorker, Task
from hits.exceptions import CrowdStuck
from hits.models import Batch, Hit
from presentation.numbers import count_of
from presentation.progress import Progress, silently

# The options to choose, by the id of a qualification type.
Tests = Mapping[str, Sequence[int]]
NO_TESTS: Tests = MappingProxyType({})
AnswerKey = tuple[str | None, str]
"""Whom an answer is about, by blind key, or None for the item; and the question's name."""


class AnswerSource(Protocol):
    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        """What this worker would post for a page: the JSON of its `answer` field."""
        ...


def form_answer(
    page: dict[str, Any],
    values: Mapping[AnswerKey, Any],
    justification: str = "",
    seconds: Mapping[AnswerKey, float] | None = None,
) -> dict[str, Any]:
    """An answer in the page's own format.

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
            raise CrowdStuck(
                f"The record has no answer of '{worker}' for item '{item}'.", code="no_answer"
            )
        record = {(j.candidate, j.question): j.value for j in draft.judgments}
        pairs = [(key, pairs["name"]) for key in page["candidates"] for pairs in page["questions"]]
        names = {pair: (self.candidates[page["item"], pair[0]], pair[1]) for pair in pairs}
        for candidate, question in names.values():
            if (candidate, question) not in record:
                raise CrowdStuck(
                    f"The record of '{worker}' has no {question} of '{candidate}' in item "
                    f"'{item}'.",
                    code="no_judgment",
                )
        values = {pair: record[name] for pair, name in names.items()}
        return form_answer(page, values, draft.justification)


@dataclass(frozen=True)
class CrowdPractice:
    """Practice that workers do before a batch's own HITs; `collect` grants those who passed what
    these ask for."""

    hit_type_id: str
    source: AnswerSource
    collect: Callable[[], object]

    def let(self, workers: Mapping[str, CrowdWorker]) -> int:
        """Let workers practise until they have passed or nothing is left; how often they did."""
        n_submitted, names = 0, list(workers)
        while names:
            tasks = {name: workers[name].accept_next(self.hit_type_id) for name in names}
            names = [name for name, task in tasks.items() if task is not None]
            for name, task in tasks.items():
                if task is not None:
                    workers[name].submit(task, self.source.answer(name, task.page))
            self.collect()
            n_submitted += len(names)
        return n_submitted


def crowd_practice(
    batch: Batch, source: AnswerSource, collect: Callable[[], object]
) -> CrowdPractice | None:
    """What a batch's workers practise, if anything was published for it."""
    type_id = batch.practice_hit_type_id
    return CrowdPractice(type_id, source, collect) if type_id else None


@dataclass(frozen=True)
class ReplayResult:
    """How much work the crowd did, and how many HITs it could not have."""

    n_workers: int
    n_submitted: int
    n_gone: int
    n_practised: int = 0
    refusal: str = ""

    def __str__(self) -> str:
        practised = f"practised {count_of(self.n_practised, 'time')} and " * bool(self.n_practised)
        sentence = (
            f"{count_of(self.n_workers, 'worker')} {practised}submitted "
            f"{count_of(self.n_submitted, 'assignment')} "
            f"({count_of(self.n_gone, 'HIT was', 'HITs were')} taken or done already)."
        )
        if self.n_submitted or not self.refusal:
            return sentence
        return f"{sentence} Nothing was open for them: {self.refusal}"


def replay_plan(
    *, plan: dict[str, list[str]], source: AnswerSource, site_url: str, **options: Any
) -> ReplayResult:
    """Let each worker do the HITs planned for them, in order; options as of `replay_group`."""
    steps = [(name, hit_id) for name, hits in plan.items() for hit_id in hits]

    def accept(workers: Mapping[str, CrowdWorker]) -> Iterable[tuple[str, Task | None]]:
        return ((name, workers[name].accept(hit_id)) for name, hit_id in steps)

    return _replay(plan, accept, source, site_url, total=len(steps), **options)


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
    **options: Any,
) -> ReplayResult:
    """Let workers take turns at whatever the group has next, until there is nothing left, once
    they passed the `tests` and the `practice`; they live in these `countries`."""

    def accept(workers: Mapping[str, CrowdWorker]) -> Iterable[tuple[str, Task | None]]:
        return _turns(workers, hit_type_id)

    return _replay(names, accept, source, site_url, total=total, **options)


def _replay(
    names: Iterable[str],
    accept: Callable[[Mapping[str, CrowdWorker]], Iterable[tuple[str, Task | None]]],
    source: AnswerSource,
    site_url: str,
    *,
    total: int,
    prefix: str = "",
    countries: Sequence[str] = (),
    tests: Tests = NO_TESTS,
    practice: CrowdPractice | None = None,
    progress: Progress = silently,
) -> ReplayResult:
    # In turns; nowhere where a batch takes everybody.
    homes = zip(names, cycle(countries or [""]), strict=False)
    workers = {name: _worker(site_url, prefix + name, tests, home) for name, home in homes}
    n_practised = practice.let(workers) if practice else 0
    n_submitted = n_gone = 0
    for name, task in progress(accept(workers), total):
        if task is None:
            n_gone += 1
            continue
        workers[name].submit(task, source.answer(name, task.page))
        n_submitted += 1
    # What the site said to the first worker whom it gave nothing.
    refusal = next((worker.refusal for worker in workers.values() if worker.refusal), "")
    return ReplayResult(len(workers), n_submitted, n_gone, n_practised, refusal)


def _turns(workers: Mapping[str, CrowdWorker], hit_type_id: str) -> Iterable[tuple[str, Task]]:
    queue = list(workers)
    while queue:
        for name in list(queue):
            task = workers[name].accept_next(hit_type_id)
            if task is None:
                queue.remove(name)
            else:
                yield name, task


def _worker(site_url: str, name: str, tests: Tests, country: str) -> CrowdWorker:
    worker = CrowdWorker(site_url, name, secret=settings.SECRET_KEY)
    worker.arrive()
    if country:
        worker.live_in(country)
    for type_id, choices in tests.items():
        worker.take_test(type_id, choices)
    return worker
