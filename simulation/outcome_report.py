from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.frames import judgment_frame
from annotation.models import Study
from presentation.numbers import plain_values
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy
from simulation.outcome_study import (
    LEAST_TARGETS,
    MARGIN,
    N_DRAWS,
    Bias,
    Ceiling,
    Counterfactual,
    Order,
    biases,
    ceiling,
    counterfactual,
    orders,
)
from simulation.recorded_dialogues import dialogues_of, origin_of
from stats.arguments import Floats
from stats.libraries import np, pd
from stats.ranking.topic_means import TopicMean, mean_over_topics

WOULD_DO = "would_do"
# With fewer the order says little: a random order of three is people's in one case of six.
FEW_RECOMMENDERS = 5


@dataclass(frozen=True)
class PeoplesOutcomes:
    """Whether annotators would take each final item: (n_recommenders, n_targets, n_annotators),
    NaN where a target had fewer; `of_random` (n_targets,) is the mean of the item at random."""

    recommenders: tuple[str, ...]
    targets: tuple[str, ...]
    ratings: Floats
    of_random: Floats
    n_answers: int
    n_annotators: int
    n_unanswered: int

    @property
    def human(self) -> Floats:
        means: Floats = np.nanmean(self.ratings, axis=2)
        return means


def outcomes_of(study: Study) -> PeoplesOutcomes:
    """What annotators whose answers were not rejected say of each recommender's final items.

    A dialogue that ended with the target itself has an outcome of 1: nobody was asked.
    """
    finals = _finals(study)
    frame = judgment_frame(study)
    frame = frame[frame["question"] == WOULD_DO]
    frame = frame.astype({"item": str, "annotator": str, "candidate": str})
    if frame.empty:
        raise DialoguesUnfit(
            _("Study '{study}' has no answers. Publish it and collect what workers answer.").format(
                study=study.slug
            ),
            code="no_answers",
        )
    frame["answer"] = frame["annotator"] + " " + frame["round"].astype(str)
    answered = dict(_complete(frame))
    targets = [target for target in finals["target"].unique() if target in answered]
    names = [name for name in finals["recommender"].unique() if name]
    rows = {target: _ratings(answered[target], finals, target, names) for target in targets}
    widest = max(one.shape[1] for one in rows.values())
    ratings = np.full((len(names) + 1, len(targets), widest), np.nan)
    for at, one in enumerate(rows.values()):
        ratings[:, at, : one.shape[1]] = one
    return PeoplesOutcomes(
        recommenders=tuple(names),
        targets=tuple(targets),
        ratings=ratings[:-1],
        of_random=np.asarray(np.nanmean(ratings[-1], axis=1)),
        n_answers=len(frame[["item", "answer"]].drop_duplicates()),
        n_annotators=frame["annotator"].nunique(),
        n_unanswered=finals["target"].nunique() - len(targets),
    )


def _finals(study: Study) -> pd.DataFrame:
    dialogues = dialogues_of(study, DialogueStudy.Kind.OUTCOMES)
    rows = dialogues.final_items.values("item__key", "recommender", "shown", "is_target")
    return pd.DataFrame(list(rows)).rename(columns={"item__key": "target"})


def _complete(frame: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    for item, rows in frame.groupby("item", sort=False):
        values = rows.pivot(index="candidate", columns="answer", values="value")
        if (complete := values.dropna(axis=1)).shape[1]:
            yield str(item), complete


def _ratings(
    values: pd.DataFrame, finals: pd.DataFrame, target: str, names: Sequence[str]
) -> Floats:
    """(n_recommenders + 1, n_answers) of a target, the random item last."""
    of_target = finals[finals["target"] == target].set_index("recommender")
    ones = np.ones(values.shape[1])
    rows = [
        ones if row["is_target"] else values.loc[row["shown"]].to_numpy(dtype=np.float64)
        for row in (of_target.loc[name] for name in (*names, ""))
    ]
    return np.stack(rows)


def simulated_outcomes(study: Study, people: PeoplesOutcomes) -> dict[str, Floats]:
    """In the shape of people's, in the order of the log."""
    dialogues = dialogues_of(study, DialogueStudy.Kind.OUTCOMES)
    rows = dialogues.simulated_outcomes.values_list("user", "recommender", "item__key", "value")
    at = {name: number for number, name in enumerate(people.recommenders)}
    column = {name: number for number, name in enumerate(people.targets)}
    of: dict[str, Floats] = {}
    for user, recommender, target, value in rows:
        values = of.setdefault(user, np.full((len(at), len(column)), np.nan))
        if target in column:
            values[at[recommender], column[target]] = value
    return of


@dataclass(frozen=True)
class Share:
    """Share of annotators who accept a recommender's final items, mean over targets. Without a
    recommender, of the random items."""

    recommender: str
    mean: TopicMean

    def record(self) -> dict[str, Any]:
        one = self.mean
        numbers = {"value": one.value, "ci_low": one.ci_low, "ci_high": one.ci_high}
        return {"recommender": self.recommender, **plain_values(numbers), "reason": one.reason}


@dataclass(frozen=True)
class OutcomeResult:
    """`ceiling` is empty with a reason if annotators are too few; no counterfactual of a single
    user."""

    people: PeoplesOutcomes
    users: tuple[str, ...]
    shares: tuple[Share, ...]
    of_random: Share
    biases: tuple[Bias, ...]
    orders: tuple[Order, ...]
    ceiling: Ceiling
    ceiling_reason: str
    chosen_on: tuple[str, ...]
    counterfactual: Counterfactual | None

    def record(self) -> dict[str, Any]:
        other = self.counterfactual
        return {
            "n_answers": self.people.n_answers,
            "n_annotators": self.people.n_annotators,
            "n_targets": len(self.people.targets),
            "n_targets_without_answers": self.people.n_unanswered,
            "users": list(self.users),
            "recommenders": [one.record() for one in self.shares],
            "item_at_random": self.of_random.record(),
            "biases": [one.record() for one in self.biases],
            "orders": [one.record() for one in self.orders],
            "ceiling": plain_values(self.ceiling.halves),
            "attainable": plain_values(self.ceiling.attainable),
            "ceiling_reason": self.ceiling_reason or None,
            "counterfactual": other and {"chosen_on": list(self.chosen_on)} | other.record(),
        }


def outcome_result(
    study: Study,
    *,
    users: Sequence[str] = (),
    chosen_on: Sequence[str] = (),
    margin: float = MARGIN,
    confidence: float = 0.95,
    n_draws: int = N_DRAWS,
    seed: int = 0,
) -> OutcomeResult:
    """Bias, order, ceiling and counterfactual of an outcome study.

    The first of `users` (all of the log, unless named) is the one that others are compared with;
    `chosen_on` are the recommenders that the counterfactual's user is chosen on, the first half
    unless named.
    """
    people = outcomes_of(study)
    if (n := len(people.targets)) < LEAST_TARGETS:
        raise DialoguesUnfit(
            _("Study '{study}' has answers about {n} targets; {least} are needed.").format(
                study=study.slug, n=n, least=LEAST_TARGETS
            )
        )
    of = simulated_outcomes(study, people)
    if unknown := [name for name in users if name not in of]:
        raise DialoguesUnfit(
            _("There is no user '{name}'. There are: {known}.").format(
                name=unknown[0], known="; ".join(of)
            )
        )
    simulated = {name: of[name] for name in dict.fromkeys(users or of)}
    human, names = people.human, people.recommenders
    known = tuple(chosen_on) or names[: (len(names) + 1) // 2]
    if unknown := [name for name in known if name not in names]:
        raise DialoguesUnfit(
            _("There is no recommender '{name}'. There are: {known}.").format(
                name=unknown[0], known=", ".join(names)
            )
        )
    draws: dict[str, Any] = {"confidence": confidence, "n_draws": n_draws, "seed": seed}
    top, reason = _ceiling(people, seed)
    return OutcomeResult(
        people=people,
        users=tuple(simulated),
        shares=tuple(
            Share(name, mean_over_topics(row, confidence=confidence))
            for name, row in zip(names, human, strict=True)
        ),
        of_random=Share("", mean_over_topics(people.of_random, confidence=confidence)),
        biases=tuple(biases(human, simulated, names, margin=margin, confidence=confidence)),
        orders=tuple(orders(human, simulated, names, **draws)),
        ceiling=top,
        ceiling_reason=reason,
        chosen_on=known,
        counterfactual=counterfactual(human, simulated, names, known, **draws)
        if len(simulated) > 1
        else None,
    )


def _ceiling(people: PeoplesOutcomes, seed: int) -> tuple[Ceiling, str]:
    has_two = (~np.isnan(people.ratings[0])).sum(axis=1) >= 2
    if (n := int(has_two.sum())) < LEAST_TARGETS:
        return Ceiling({}, {}), f"{n} targets have two annotators; {LEAST_TARGETS} are needed"
    return ceiling(people.ratings[:, has_two], seed=seed), ""


def outcome_record(study: Study, **options: Any) -> dict[str, Any]:
    result = outcome_result(study, **options)
    named = {"margin": MARGIN, "confidence": 0.95, "n_draws": N_DRAWS, "seed": 0} | options
    return {
        "study": study.slug,
        "origin": origin_of(dialogues_of(study, DialogueStudy.Kind.OUTCOMES)),
        **{name: named[name] for name in ("margin", "confidence", "n_draws", "seed")},
        **result.record(),
    }
