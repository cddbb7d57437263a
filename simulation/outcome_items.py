"""Items of an outcome study: for each target what every recommender's dialogue ended with, and an
item at random to compare with, blind and shuffled.

A worker sees the target and the other products, each once whoever ended with it. Which
recommender it was, and what simulated users made of the same dialogues, is stored apart before
anybody is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.utils.translation import gettext as _

from annotation.readers.drafts import DRAFTS_WITH_PICTURES_AT_ONCE, ItemDraft, StudyDraft
from simulation.catalogue import Catalogue
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy, FinalItem, SimulatedOutcome
from simulation.outcome_study import LEAST_TARGETS
from simulation.recorded_dialogues import (
    log_rows,
    losses_and_gains,
    product_candidate,
    product_picture,
    product_words,
    require_in,
    require_same_items,
)

NEEDED = ("recommender", "user", "seed", "target", "turn", "shown", "found")
ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Ending:
    shown: str
    turn: int
    found: bool


@dataclass(frozen=True)
class RecordedEndings:
    of: Mapping[tuple[str, str, str, int], Ending]
    recommenders: tuple[str, ...]
    users: tuple[str, ...]
    targets: tuple[str, ...]
    seeds: tuple[int, ...]

    def final(self, recommender: str, user: str, target: str) -> Ending:
        return self.of[recommender, user, target, min(self.seeds)]

    def outcome(self, recommender: str, user: str, target: str) -> float:
        """The share of dialogues, one per seed, whose last item the user accepts."""
        found = [self.of[recommender, user, target, seed].found for seed in self.seeds]
        return sum(found) / len(found)


def read_endings(path: Path) -> RecordedEndings:
    of: dict[tuple[str, str, str, int], Ending] = {}
    for _number, row in log_rows(path, NEEDED):
        key = (row["recommender"], row["user"], row["target"], row["seed"])
        if key not in of or of[key].turn <= row["turn"]:
            of[key] = Ending(row["shown"], row["turn"], row["found"])
    endings = RecordedEndings(
        of,
        recommenders=tuple(dict.fromkeys(key[0] for key in of)),
        users=tuple(dict.fromkeys(key[1] for key in of)),
        targets=tuple(dict.fromkeys(key[2] for key in of)),
        seeds=tuple(dict.fromkeys(key[3] for key in of)),
    )
    _require_complete(path, endings)
    return endings


def _require_complete(path: Path, endings: RecordedEndings) -> None:
    if len(endings.recommenders) < 2:
        raise DialoguesUnfit(
            _("{file} has fewer than two recommenders, which have no order.").format(file=path.name)
        )
    if len(endings.targets) < LEAST_TARGETS:
        raise DialoguesUnfit(
            _("{file} has dialogues about {n} targets; an outcome study needs {least}.").format(
                file=path.name, n=len(endings.targets), least=LEAST_TARGETS
            )
        )
    expected = product(endings.recommenders, endings.users, endings.targets, endings.seeds)
    if missing := next((one for one in expected if one not in endings.of), None):
        recommender, user, target, seed = missing
        raise DialoguesUnfit(
            _(
                "{file} has no dialogue of {user} with {recommender} about {target}, "
                "seed {seed}: each user must have had one with every recommender "
                "about every target."
            ).format(file=path.name, user=user, recommender=recommender, target=target, seed=seed)
        )


@dataclass(frozen=True)
class OutcomeItems:
    finals: Mapping[str, Mapping[str, Ending]]
    items: Sequence[ItemDraft]
    endings: RecordedEndings
    final_user: str
    catalogue: str
    seed: int
    kind: ClassVar[DialogueStudy.Kind] = DialogueStudy.Kind.OUTCOMES

    @property
    def draft(self) -> StudyDraft:
        at_once = DRAFTS_WITH_PICTURES_AT_ONCE
        return StudyDraft(kind="alternatives", items=self.items, drafts_at_once=at_once)

    @property
    def origin(self) -> dict[str, Any]:
        return {
            "catalogue": self.catalogue,
            "seed": self.seed,
            "final_user": self.final_user,
            "n_targets_left_out": len(self.endings.targets) - len(self.finals),
        }

    def store(self, dialogues: DialogueStudy) -> None:
        keys = dict(dialogues.study.items.values_list("key", "pk"))
        FinalItem.objects.bulk_create(self._final_items(dialogues, keys), batch_size=ROWS_AT_ONCE)
        outcomes = self._outcomes(dialogues, keys)
        SimulatedOutcome.objects.bulk_create(outcomes, batch_size=ROWS_AT_ONCE)

    def _final_items(
        self, dialogues: DialogueStudy, keys: Mapping[str, int]
    ) -> Iterator[FinalItem]:
        for target, rows in self.finals.items():
            for recommender, one in rows.items():
                yield FinalItem(
                    dialogues=dialogues,
                    item_id=keys[target],
                    recommender=recommender,
                    shown=one.shown,
                    turn=one.turn,
                    is_target=one.shown == target,
                )

    def _outcomes(
        self, dialogues: DialogueStudy, keys: Mapping[str, int]
    ) -> Iterator[SimulatedOutcome]:
        for user, recommender in product(self.endings.users, self.endings.recommenders):
            for target in self.finals:
                yield SimulatedOutcome(
                    dialogues=dialogues,
                    item_id=keys[target],
                    user=user,
                    recommender=recommender,
                    value=self.endings.outcome(recommender, user, target),
                )


def outcome_items(
    log: Path,
    catalogue: Catalogue,
    *,
    final_user: str = "",
    n_targets: int | None = None,
    seed: int = 0,
) -> OutcomeItems:
    """Final items of one user's dialogues (the log's first unless named) as items of a study.
    People's answers about them are compared with every user. Raises DialoguesUnfit."""
    endings = read_endings(log)
    user = final_user or endings.users[0]
    if user not in endings.users:
        raise DialoguesUnfit(
            _("{file} has no user '{user}'. It has {users}.").format(
                file=log.name, user=user, users=", ".join(endings.users)
            )
        )
    require_same_items(catalogue, losses_and_gains(log))
    rng = np.random.default_rng(seed)
    targets = _drawn_targets(endings.targets, n_targets, rng)
    finals = {target: _finals(endings, user, target, catalogue, rng) for target in targets}
    items = [
        _item(number, target, rows, catalogue, rng)
        for number, (target, rows) in enumerate(finals.items(), 1)
    ]
    return OutcomeItems(finals, items, endings, user, catalogue.source, seed)


def _drawn_targets(targets: Sequence[str], n: int | None, rng: np.random.Generator) -> list[str]:
    if n is None or n == len(targets):
        return list(targets)
    if n > len(targets):
        raise DialoguesUnfit(
            _("There are dialogues about {there} targets, not about {n}.").format(
                there=f"{len(targets):,}", n=f"{n:,}"
            )
        )
    if n < LEAST_TARGETS:
        raise DialoguesUnfit(
            _("An outcome study needs {least} targets, not {n}.").format(least=LEAST_TARGETS, n=n)
        )
    return [targets[place] for place in sorted(rng.choice(len(targets), n, replace=False))]


def _finals(
    endings: RecordedEndings,
    user: str,
    target: str,
    catalogue: Catalogue,
    rng: np.random.Generator,
) -> dict[str, Ending]:
    """By recommender; "" is a random item that no recommender ended with."""
    finals = {one: endings.final(one, user, target) for one in endings.recommenders}
    require_in(catalogue, {target, *(ending.shown for ending in finals.values())})
    taken = {target, *(ending.shown for ending in finals.values())}
    if len(taken) >= len(catalogue):
        raise DialoguesUnfit(
            _("The catalogue ({catalogue}) has no other item to compare with.").format(
                catalogue=catalogue.source
            )
        )
    while (other := catalogue.ids[int(rng.integers(len(catalogue)))]) in taken:
        pass
    return finals | {"": Ending(other, 0, False)}


def _item(
    number: int,
    target: str,
    finals: Mapping[str, Ending],
    catalogue: Catalogue,
    rng: np.random.Generator,
) -> ItemDraft:
    """The target itself is not asked about: next to it all others look worse."""
    shown = [one for one in dict.fromkeys(each.shown for each in finals.values()) if one != target]
    return ItemDraft(
        key=target,
        line=number,
        context=product_words(catalogue, target),
        picture=product_picture(catalogue, target),
        candidates=tuple(
            product_candidate(catalogue, shown[place]) for place in rng.permutation(len(shown))
        ),
    )
