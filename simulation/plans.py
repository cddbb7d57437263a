from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from annotation.readers.drafts import FileReadings, ReadingReport
from annotation.relevance import relevance_sources
from presentation.numbers import group_values
from presentation.progress import Progress, silently
from simulation.catalogue import (
    Catalogue,
    Targets,
    from_judgments,
    read_dialogues,
    read_starts,
    targets_of,
)
from simulation.critics import CaptionCritic, Critic, PairedCaptionCritic, critic_of, read_captions
from simulation.drawn_products import drawn_catalogue, stand_in_catalogue
from simulation.exceptions import ExperimentUnfit
from simulation.experiments import Experiment, Settings, run_experiment
from simulation.product_files import (
    read_fashion_iq,
    read_folder,
    read_names,
    read_shoes,
    read_sprite,
)
from simulation.recommenders import EmbeddingRecommender, RandomRecommender, Recommender
from simulation.users import CHOICES, MetaUser, Mode, of_mode, p_switch_of_effect
from stats.ranking import measure

MOST_TURNS, MOST_USERS, MOST_SEEDS, MOST_RECOMMENDERS = 50, 60, 30, 12
# Far beyond any number of turns, and within what a row of a user holds.
MOST_TOLERANCE = 1000
MOST_MEASURES, MOST_DIALOGUES = 30, 2_000_000
# Measured on a busy core: to bring a dialogue one turn on, and for each item that is ranked there.
SECONDS_A_TURN, SECONDS_A_RANKED_ITEM = 3e-6, 6e-9
# To evaluate it, and again under each other choice of qrels, carrying and share judged.
SECONDS_AN_EVALUATION = 2e-5
# To open a catalogue and targets, and to evaluate what came of them.
SECONDS_AROUND = 3.0
EMBEDDING, RANDOM, TRAINED = "embedding", "random", "trained"


@dataclass(frozen=True)
class Plan:
    """Grades from `relevant_from` on are accepted."""

    users: tuple[MetaUser, ...]
    recommenders: tuple[str, ...]
    settings: Settings
    relevant_from: int = 1

    @property
    def n_runs(self) -> int:
        return len(self.users) * len(self.recommenders) * len(self.settings.seeds)

    def seconds(self, n_targets: int, n_items: int) -> float:
        a_turn = SECONDS_A_TURN + SECONDS_AN_EVALUATION + SECONDS_A_RANKED_ITEM * n_items
        return SECONDS_AROUND + self.n_runs * n_targets * self.settings.n_turns * a_turn


def plan_of(rules: Mapping[str, Any]) -> Plan:
    try:
        plan = Plan(
            users=tuple(named_user(name, mode=rules["mode"]) for name in rules["users"]),
            recommenders=tuple(rules["recommenders"]),
            settings=Settings(
                n_turns=rules["n_turns"],
                seeds=tuple(rules["seeds"]),
                repeats=rules["repeats"],
                measures=tuple(dict.fromkeys(measure(name) for name in rules["measures"])),
                qrels=rules["qrels"],
                carry=rules["carry"],
            ),
            relevant_from=rules["relevant_from"],
        )
    except ValueError as error:
        raise ExperimentUnfit(f"{error}.") from None
    if faults := [*_sizes(plan), *impossible_settings(plan)]:
        raise ExperimentUnfit(" ".join(faults))
    return plan


def _sizes(plan: Plan) -> Iterator[str]:
    for n, most, few, many in (
        (len(plan.users), MOST_USERS, _("Choose a user."), _("Choose at most {n} users.")),
        (
            len(plan.recommenders),
            MOST_RECOMMENDERS,
            _("Choose a recommender."),
            _("Choose at most {n} recommenders."),
        ),
        (
            len(plan.settings.seeds),
            MOST_SEEDS,
            _("Name a seed."),
            _("Name at most {n} seeds."),
        ),
        (plan.settings.n_turns, MOST_TURNS, _("Run a turn."), _("Run at most {n} turns.")),
        (
            len(plan.settings.measures),
            MOST_MEASURES,
            _("Choose a measure."),
            _("Choose at most {n} measures."),
        ),
    ):
        if n < 1:
            yield few
        elif n > most:
            yield many.format(n=most)
    if tolerant := [user.name for user in plan.users if user.tolerance > MOST_TOLERANCE]:
        yield _("{user}: choose a tolerance of at most {n} turns.").format(
            user=tolerant[0], n=f"{MOST_TOLERANCE:,}"
        )
    if deep := [one.name for one in plan.settings.measures if (one.cutoff or 0) > 10]:
        yield _("{measure} looks further than the 10 items that are ranked at a turn.").format(
            measure=deep[0]
        )


def impossible_settings(plan: Plan) -> Iterator[str]:
    """Reasons why cells of the design would repeat another."""
    yield from _never_switching(plan)
    yield from named_twice(_("User"), [user.name for user in plan.users])
    yield from named_twice(_("Recommender"), plan.recommenders)
    yield from named_twice(_("Seed"), list(map(str, plan.settings.seeds)))
    if plan.users and plan.users[0].kind != "base":
        yield _("The first user must be SimBase, which the others are compared with.")


def _never_switching(plan: Plan) -> Iterator[str]:
    """Users that keep to their target and end and leave alike have the same row. One such user
    beside SimBase is fine, because it ends dialogues at other accepted items."""
    never = (user for user in plan.users if _keeps_to_target(user, plan.settings.n_turns))
    for users in group_values(((user.accepts, user.leave_hazard), user) for user in never).values():
        names = list(dict.fromkeys(user.name for user in users))
        if len(names) > 1:
            yield _(
                "{first} and {other} would have the same row: neither has another item in mind "
                "within {turns} turns. Leave one of them out, or choose a lower tolerance, more "
                "turns or P above 0."
            ).format(first=names[0], other=names[1], turns=plan.settings.n_turns)


def _keeps_to_target(user: MetaUser, n_turns: int) -> bool:
    # Before the first critique nothing was lost or gained.
    n_spared = max(user.n_spared, 1 if user.waits_for_a_change else 0)
    never = user.kind == "base" or (user.kind == "prob" and user.p_switch == 0)
    return never or n_spared >= n_turns


def controls(plan: Plan) -> list[str]:
    """Users beside SimBase that accept an alternative but never ask for one."""
    return [
        user.name
        for user in plan.users
        if user.kind != "base" and _keeps_to_target(user, plan.settings.n_turns)
    ]


def named_twice(what: str, names: Sequence[str]) -> Iterator[str]:
    for name, n in Counter(names).items():
        if n > 1:
            yield _("{what} {name} is named twice.").format(what=what, name=name)


def require_bearable(plan: Plan, n_targets: int) -> None:
    if plan.n_runs * n_targets > MOST_DIALOGUES:
        raise ExperimentUnfit(
            _(
                "These are {n} dialogues, and an experiment has {most} at most. Choose fewer "
                "users, recommenders or seeds."
            ).format(n=f"{plan.n_runs * n_targets:,}", most=f"{MOST_DIALOGUES:,}")
        )


@dataclass(frozen=True, kw_only=True)
class Request:
    catalogue: str
    recommenders: tuple[str, ...]
    users: tuple[str, ...]
    settings: Settings
    qrels: Path | None = None
    dialogues: tuple[Path, Path] | None = None
    starts: Path | None = None
    captions: Path | None = None
    mode: Mode = "paper"
    choices: dict[str, Any]
    # Filled when the files are read.
    readings: FileReadings = field(default_factory=FileReadings)


def run_request(request: Request, *, progress: Progress = silently) -> Experiment:
    users = [named_user(name, mode=request.mode, **request.choices) for name in request.users]
    catalogue = named_catalogue(request.catalogue, seed=request.settings.seeds[0])
    critic = named_critic(catalogue, request.captions, report=_report(request, request.captions))
    recommenders = [
        (named_recommender(name, catalogue, critic), critic) for name in request.recommenders
    ]
    targets = requested_targets(request, catalogue)
    experiment = run_experiment(
        catalogue, targets, users, recommenders, request.settings, progress=progress
    )
    plan = Plan(tuple(users), request.recommenders, request.settings)
    # Pages refuse such a design; a published one may be repeated here as it was.
    faults = (fault.rstrip(".") for fault in impossible_settings(plan))
    return replace(experiment, notes=(*experiment.notes, *faults))


def requested_targets(request: Request, catalogue: Catalogue) -> Targets:
    if request.dialogues is not None:
        return read_dialogues(catalogue, *request.dialogues, readings=request.readings)
    if request.qrels is None:
        raise ValueError("qrels or dialogues are needed")
    return targets_of_qrels(request, catalogue, request.qrels)


def targets_of_qrels(request: Request, catalogue: Catalogue, path: Path) -> Targets:
    grades = relevance_sources().read_qrels(path)
    request.readings.add(path, grades.reading)
    accepted, rejected = from_judgments(
        grades.topics, grades.documents, grades.topic, grades.document, grades.grade
    )
    starts = None
    if request.starts:
        starts = read_starts(request.starts, report=_report(request, request.starts))
    return targets_of(catalogue, accepted, rejected=rejected, starts=starts)


def _report(request: Request, path: Path | None) -> ReadingReport | None:
    """A new report, unless the file was read before."""
    if path is None or any(each.path == path for each in request.readings.files):
        return None
    return request.readings.add(path)


CATALOGUES = (
    "FOLDER with ids.txt and embeddings.npy, drawn:5000, sprite:FILE, shoes:NAMES,EMBEDDINGS, "
    "fashioniq:SPLIT,EMBEDDINGS, stand-in:NAMES"
)
USERS = (
    "base, tol:TOLERANCE, prob:TOLERANCE:P, prob:TOLERANCE:d=EFFECT; with choices of its own "
    "behind commas, as in prob:3:0.75,mode=released,turn_base=1,sticky=yes"
)
RECOMMENDERS = "random, embedding, embedding:RECENCY, or the FILE of a trained one"


def named_catalogue(name: str, *, seed: int = 0) -> Catalogue:
    kind, _, rest = name.partition(":")
    files = [Path(part) for part in rest.split(",")]
    readers: dict[tuple[str, int], Callable[..., Catalogue]] = {
        ("sprite", 1): read_sprite,
        ("shoes", 2): read_shoes,
        ("fashioniq", 2): read_fashion_iq,
        ("stand-in", 1): lambda path: stand_in_catalogue(read_names(path), seed=seed),
    }
    if kind == "drawn" and rest.isdecimal():
        return drawn_catalogue(int(rest), seed=seed)
    if rest and (reader := readers.get((kind, len(files)))):
        return reader(*files)
    if Path(name).is_dir():
        return read_folder(Path(name))
    raise ValueError(f"catalogue must be one of {CATALOGUES}, not {name!r}")


def named_user(name: str, *, mode: Mode = "paper", **choices: Any) -> MetaUser:
    """Choices in the name take precedence over `choices`, and these over the mode's."""
    spec, *own = name.split(",")
    try:
        named = dict(_choice(text) for text in own)
        return replace(_user_of_spec(spec, named.pop("mode", mode)), **choices | named)
    except ValueError as error:
        raise ValueError(f"user {name!r}: {error}") from None


def _user_of_spec(spec: str, mode: Mode) -> MetaUser:
    kind, *numbers = spec.split(":")
    if kind == "base" and not numbers:
        return of_mode("base", mode)
    if kind == "tol" and len(numbers) == 1:
        return replace(of_mode("tol", mode), tolerance=int(numbers[0]))
    if kind == "prob" and len(numbers) == 2:
        p_switch = _p_switch(numbers[1])
        return replace(of_mode("prob", mode), tolerance=int(numbers[0]), p_switch=p_switch)
    raise ValueError(f"it must be one of {USERS}")


def _choice(text: str) -> tuple[str, Any]:
    name, _, value = (part.strip() for part in text.partition("="))
    if name in ("sticky", "target_among"):
        if value not in ("yes", "no"):
            raise ValueError(f"{name} must be yes or no, not {value!r}")
        return name, value == "yes"
    if name == "turn_base":
        return name, int(value)
    if name == "leave_hazard":
        return name, float(value)
    if name in ("mode", *CHOICES):
        return name, value
    allowed = ", ".join(("mode", "leave_hazard", *CHOICES))
    raise ValueError(f"{name!r} is no choice; there are {allowed}")


def _p_switch(text: str) -> float:
    if text.startswith("d="):
        return p_switch_of_effect(float(text.removeprefix("d=")))
    return float(text)


def named_recommender(name: str, catalogue: Catalogue, critic: Critic) -> Recommender:
    """A trained one is named by its file. Independent of the seeds of its dialogues."""
    kind, _, recency = name.partition(":")
    if name == "random":
        return RandomRecommender(catalogue)
    if kind == "embedding":
        try:
            weight = float(recency or 0.5)
        except ValueError:
            raise ValueError(f"recommender {name!r}: {recency!r} is not a number") from None
        recommender = EmbeddingRecommender(catalogue, critic, recency=weight)
        recommender.name = name
        return recommender
    if Path(name).is_file():
        # Torch, which takes seconds, is for those who name a trained one.
        from simulation.recommenders.trained.training import read_recommender

        return read_recommender(Path(name), catalogue, critic)
    raise ValueError(f"recommender must be one of {RECOMMENDERS}, not {name!r}")


def named_critic(
    catalogue: Catalogue, captions: Path | None = None, *, report: ReadingReport | None = None
) -> Critic:
    critic = critic_of(catalogue)
    if captions is None:
        return critic
    rows = read_captions(captions, report=report)
    if catalogue.attributes is None:
        return PairedCaptionCritic(catalogue, rows, source=captions.name)
    return CaptionCritic(critic, [row.text for row in rows], source=captions.name)
