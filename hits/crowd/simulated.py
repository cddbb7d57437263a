import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.audit import record
from accounts.models import User
from annotation.models import Candidate, Item, PlacedCheck, Study
from annotation.protocols.scales import ValueCondition
from hits.connections import client_of
from hits.crowd.replay import (
    AnswerKey,
    CrowdPractice,
    ReplayResult,
    crowd_names,
    crowd_practice,
    form_answer,
    replay_group,
)
from hits.crowd.similarity import Qualities, shared_words, study_qualities
from hits.exceptions import ChangeUnfit, require
from hits.judgments import CHOOSING, TIE
from hits.limits import is_marketplace_here
from hits.models import Batch, Hit
from hits.practice import collect_practice
from hits.qualification_tests import right_choices
from hits.questions import ALL
from hits.requirements import countries_of
from hits.studies import require_current
from presentation.progress import Progress, silently
from work.execution import RunningJob

SEED = 0
# Beside those whom every HIT needs, so that not everybody answers everything.
N_SPARE = 1


def may_simulate(batch: Batch) -> bool:
    is_out = bool(batch.hit_type_id) and batch.closed_at is None
    is_here = batch.connection.is_on_this_site and is_marketplace_here()
    return settings.SIMULATED_CROWD and is_out and is_here and not batch.is_recruited


def crowd_size(batch: Batch) -> int:
    n_needed = batch.max_assignments + batch.n_added
    if batch.max_per_worker:
        n_assignments = Hit.objects.of(batch).published().count() * n_needed
        n_needed = max(n_needed, -(-n_assignments // batch.max_per_worker))
    return n_needed + N_SPARE


@transaction.atomic
def allow_crowd(*, batch: Batch, actor: User) -> None:
    require_current(batch.study)
    require_possible(batch)
    record(
        team=batch.study.team,
        actor=actor,
        action="batch.simulated_crowd",
        subject=batch.study.slug,
        details={"batch": batch.pk, "n_workers": crowd_size(batch)},
    )


def require_possible(batch: Batch) -> None:
    require(
        may_simulate(batch),
        ChangeUnfit(_("No simulated crowd is offered for this batch."), code="no_crowd"),
    )
    require(
        batch.offered_until > timezone.now(),
        ChangeUnfit(
            _("The batch has expired: extend it first, or nobody can accept HITs."), code="expired"
        ),
    )


def simulate_answers(
    batch: Batch,
    *,
    n_workers: int,
    seed: int,
    site_url: str,
    faulty: Sequence[str] = (),
    progress: Progress = silently,
) -> ReplayResult:
    faults = faulty_names(faulty, seed=seed)
    careful = SimulatedAnswers(batch.study, seed=seed)
    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=[*crowd_names(n_workers, seed=seed), *faults],
        source=FaultyAnswers(careful, faults, seed=seed) if faults else careful,
        site_url=site_url,
        countries=countries_of(batch),
        total=Hit.objects.of(batch).published().count() * batch.max_assignments,
        tests=right_choices(batch),
        practice=simulated_practice(batch, seed=seed),
        progress=progress,
    )


def simulated_practice(batch: Batch, *, seed: int) -> CrowdPractice | None:
    # Collected as soon as it is done, since the batch's own HITs wait for it.
    return crowd_practice(
        batch,
        SimulatedAnswers(batch.study, seed=seed),
        lambda: collect_practice(batch=batch, client=client_of(batch.connection)),
    )


def answer_in_background(running: RunningJob, batch: Batch) -> str:
    # Done again, it continues with what is open: a worker accepts no HIT twice.
    require_possible(batch)
    result = simulate_answers(
        batch,
        n_workers=crowd_size(batch),
        seed=SEED,
        site_url=settings.SITE_URL,
        progress=running.progress(_("assignments of batch {batch}").format(batch=batch.pk)),
    )
    n = result.n_submitted
    text = ngettext(
        "Simulated workers submitted {n:,} assignment, which is marked as simulated.",
        "Simulated workers submitted {n:,} assignments, which are marked as simulated.",
        n,
    ).format(n=n)
    return text if n else f"{text} {result.refusal}".strip()


REASONS_OF_PRODUCTS = (
    "It has the same shape and would be worn on the same occasions.",
    "The colour and the style are close enough to the target.",
    "It would serve me equally well, though the details differ.",
    "None of the others comes near the target in shape and colour.",
)
REASONS_OF_RESPONSES = (
    "It answers what was asked and fits what was said before.",
    "The wording is natural, and what it says seems right.",
    "It would help me, though it could be more to the point.",
    "Something of what was asked for is missing or not quite clear.",
)
# What becomes of a value on the scale from one number to the other.
Change = Callable[[int, int, float], float]
# Two candidates that differ by less seem equally good.
LEAST_DIFFERENCE = 0.02


# Fewer products than half are alternatives to a target.
SELECTION_OFFSET = -0.1
# So much noise that an annotator's comparisons are random.
CARELESS_NOISE = 5.0


class SimulatedAnswers:
    """A seeded model of annotators.

    A candidate is as good as the words it shares with the item's reference (or, among
    products, with the target's title); an annotator adds a bias and noise of their own, and
    compares, chooses and writes by that. It has no other claim to be like people. With
    `qualities`, as in a study whose candidates share no words, candidates are as good as these
    say. The `careless` compare at random.
    """

    def __init__(
        self,
        study: Study,
        *,
        seed: int,
        noise: float = 0.15,
        qualities: Qualities | None = None,
        careless: Collection[str] = (),
    ) -> None:
        self.seed, self.noise, self.careless = seed, noise, frozenset(careless)
        pictures = Candidate.objects.filter(item__study=study, picture__isnull=False)
        is_of_products = study.kind == Study.Kind.ALTERNATIVES or pictures.exists()
        self.reasons = REASONS_OF_PRODUCTS if is_of_products else REASONS_OF_RESPONSES
        self.items = {str(pk): key for pk, key in study.items.values_list("pk", "key")}
        self.texts = {
            (str(item.pk), candidate.blind_key): (item, candidate)
            for item in study.items.prefetch_related("candidates")
            for candidate in item.candidates.all()
        }
        has_words = any(_shared_words(each, item) for item, each in self.texts.values())
        if qualities is None and not has_words:
            qualities = study_qualities(study, seed=seed)
        self.qualities = qualities
        # Candidates among the others by blind key, questions by name.
        self.checks = {
            (str(each.item_id), each.question if each.is_question else each.blind_key): each
            for each in PlacedCheck.objects.filter(item__study=study)
            .select_related("compared")
            .order_by("protocol__number")
        }

    def answer(
        self, worker: str, page: dict[str, Any], change: Change | None = None
    ) -> dict[str, Any]:
        values: dict[AnswerKey, Any] = {}
        seconds: dict[AnswerKey, float] = {}
        for question in page["questions"]:
            bias = self._random(worker, question["name"]).gauss(0, self.noise / 2)
            for key in _subjects(question, page, values):
                names = (worker, question["name"], page["item"], self._key(page["item"], key))
                value = self._value(question, page, names, key, bias)
                if change and "min" in question:
                    low, high = question["min"], question["max"]
                    value = float(min(max(change(int(low), int(high), value), low), high))
                values[key, question["name"]] = value
                seconds[key, question["name"]] = self._seconds(*names)
        answer = form_answer(page, values, self._reason(worker, page), seconds)
        if page.get("consent"):
            answer["consent"] = {"text": page["consent"], "at": timezone.now().isoformat()}
        # Said in the answer itself, which alone comes back through any marketplace.
        return answer | {
            "reasons": list(self._reasons(worker, page, values)),
            "simulated": True,
        }

    def _value(
        self,
        question: dict[str, Any],
        page: dict[str, Any],
        names: tuple[str, ...],
        key: str | None,
        bias: float,
    ) -> Any:
        if question["kind"] in ("short_text", "long_text"):
            return self._words(self._random(*names), max(question["least_length"], 1), question)
        if question.get("about") == ALL:
            return _comparison(question, self._candidate_qualities(page, names, bias))
        if question["kind"] == "categories":
            return self._categories(question, names, key, bias, self._random(*names, "categories"))
        if (right := right_values(page).get((key, question["name"]))) is not None:
            return right
        asked = self.checks.get((page["item"], question["name"]))
        if asked is not None and asked.is_question:
            return asked.expected
        low, high = question["min"], question["max"]
        share = self._share(names, key, bias)
        if question["kind"] == "selection" and self.qualities is not None:
            share += SELECTION_OFFSET
        value = low + share * (high - low)
        if (check := self.checks.get((page["item"], key or ""))) is not None:
            value = self._checked_value(check, value, low)
        return _on_scale(value, low, high)

    def _categories(
        self,
        question: dict[str, Any],
        names: tuple[str, ...],
        key: str | None,
        bias: float,
        chance: random.Random,
    ) -> list[int]:
        least, most, n = max(question["least"], 1), question["most"], question["n"]
        if self.qualities is None or names[0] in self.careless:
            return sorted(chance.sample(range(n), chance.randint(least, most)))
        # Annotators agree on which apply, and more apply to better candidates.
        n_chosen = round(least + self._share(names, key, bias) * (most - least))
        order = self._random(*names[1:], "categories").sample(range(n), n)
        return sorted(order[: min(max(n_chosen, least), most)])

    def _candidate_qualities(
        self, page: dict[str, Any], names: tuple[str, ...], bias: float
    ) -> dict[str, float]:
        worker, question, item, _ = names
        seen = {
            key: self._share((worker, question, item, self._key(item, key)), key, bias)
            for key in page["candidates"]
        }
        return dict(sorted(seen.items(), key=lambda pair: -pair[1]))

    def _key(self, item: str, blind_key: str | None) -> str:
        if blind_key is None:
            return ""
        check = self.checks.get((item, blind_key))
        if check is not None:
            return check.compared.key if check.compared else check.key
        # A page of practice may be written in the protocol alone.
        known = self.texts.get((item, blind_key))
        return known[1].key if known else blind_key

    def _share(self, names: tuple[str, ...], blind_key: str | None, bias: float) -> float:
        check = self.checks.get((names[2], blind_key or ""))
        own = check.compared.blind_key if check and check.compared else blind_key
        known = self.texts.get((names[2], own or ""))
        if self.qualities is not None:
            item = self.items.get(names[2], "")
            quality = self.qualities.values.get((item, known[1].key if known else ""), 0.5)
        else:
            quality = _shared_words(known[1], known[0]) if known else 0.5
        item_key = known[0].key if known else names[2]
        noise = CARELESS_NOISE if names[0] in self.careless else self.noise
        return quality + bias + self._random(*names[:2], item_key, names[3]).gauss(0, noise)

    @staticmethod
    def _checked_value(check: PlacedCheck, value: float, low: float) -> float:
        if check.expected is not None:
            return check.expected
        return value if check.kind == "repeat" else low + (value - low) / 2 - 1

    def _seconds(self, worker: str, *texts: str) -> float:
        pace = self._random(worker, "pace").uniform(3, 12)
        return round(pace * self._random(worker, *texts, "time").lognormvariate(0, 0.4), 1)

    def _reason(self, worker: str, page: dict[str, Any]) -> str:
        keys = ((page["item"], key) for key in page["candidates"])
        known = next((self.texts[key][0].key for key in keys if key in self.texts), page["item"])
        return self._words(self._random(worker, known), page["justification_min_length"])

    def _reasons(
        self, worker: str, page: dict[str, Any], values: dict[AnswerKey, Any]
    ) -> Iterator[dict[str, Any]]:
        if page["reason"]["rule"] != "choice":
            return
        names = {question["name"] for question in page["questions"] if question["kind"] in CHOOSING}
        for (key, name), value in values.items():
            chosen = (key if value == 1 else None) if key else value
            if name in names and chosen and chosen != TIE:
                chance = self._random(worker, page["item"], self._key(page["item"], chosen))
                yield {
                    "candidate": chosen,
                    "text": self._words(chance, page["reason"]["least_length"]),
                }

    def _words(
        self, chance: random.Random, least: int, question: dict[str, Any] | None = None
    ) -> str:
        words = ""
        while len(words) < least:
            words = f"{words} {chance.choice(self.reasons)}".strip()
        return words[: question["most_length"]].strip() if question else words

    def _random(self, *names: str) -> random.Random:
        return random.Random(":".join((str(self.seed), *names)))


def right_values(page: dict[str, Any]) -> dict[AnswerKey, float]:
    return {
        (row["candidate"], row["question"]): row["value"]
        for row in page.get("practice", {}).get("answers", ())
    }


def _subjects(
    question: dict[str, Any], page: dict[str, Any], values: dict[AnswerKey, Any]
) -> list[str | None]:
    about = page["candidates"] if question.get("about", "candidate") == "candidate" else [None]
    about = [question["candidate"]] if "candidate" in question else about
    if (when := question.get("when")) is None:
        return list(about)
    limits = {name: when[name] for name in ("below", "above") if name in when}
    condition = ValueCondition(when["question"], tuple(when.get("any_of", ())), **limits)
    before = {key for key, name in values if name == when["question"]}
    return [
        key
        for key in about
        if condition.holds(values.get((key if key in before else None, when["question"])))
    ]


def _comparison(question: dict[str, Any], qualities: dict[str, float]) -> Any:
    ordered = list(qualities)
    if question["kind"] == "best_worst":
        return {"best": ordered[0], "worst": ordered[-1]}
    if question["kind"] == "ranking":
        return _ranked(ordered, qualities, ties=question["ties"])
    if question["ties"] and qualities[ordered[0]] - qualities[ordered[1]] < LEAST_DIFFERENCE:
        return TIE
    return ordered[0]


def _ranked(ordered: list[str], qualities: dict[str, float], *, ties: bool) -> list[list[str]]:
    groups: list[list[str]] = []
    for key in ordered:
        if ties and groups and qualities[groups[-1][-1]] - qualities[key] < LEAST_DIFFERENCE:
            groups[-1].append(key)
        else:
            groups.append([key])
    return groups


def _on_scale(value: float, low: float, high: float) -> float:
    steps = round(min(max(value, low), high) - low)
    return float(low + min(steps, math.floor(high - low)))


def shares_words(study: Study) -> bool:
    """Whether any candidate shares a word with its reference or context."""
    items = study.items.prefetch_related("candidates").iterator(chunk_size=200)
    return any(_shared_words(each, item) for item in items for each in item.candidates.all())


def _shared_words(candidate: Candidate, item: Item) -> float:
    return shared_words(candidate.text, item.reference or item.context)


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
    names = {}
    for fault in faults:
        for part in ("-a", "-b") if fault == "colluding" else ("",):
            names[f"crowd-{seed}-{fault.replace('_', '-')}{part}"] = fault
    return names


class FaultyAnswers:
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
            answer["pasted"] = (
                bool(answer["justification"] or answer["reasons"]) and fault == "copy_paste"
            )
        return answer

    def _change(self, worker: str, person: str, rng: random.Random) -> Change | None:
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
    for holder, name in ((answer, "justification"), *((r, "text") for r in answer["reasons"])):
        if holder[name]:
            n = max(len(holder[name]) // len(reason) + 1, 1)
            holder[name] = " ".join([reason] * n)
