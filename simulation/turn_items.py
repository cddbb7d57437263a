"""Items of a switching study: turns of recorded dialogues, as many losses as gains by a seed.

A worker sees the target, the item before and the item now, and the target's alternatives to take
instead. Which recommender it was, and whether the turn was a loss or a gain, stays here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.utils.translation import gettext as _

from annotation.readers.drafts import ItemDraft, PictureDraft, StudyDraft
from simulation.catalogue import Catalogue
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy, RecordedTurn
from simulation.recorded_dialogues import (
    log_rows,
    product_candidate,
    product_picture,
    product_words,
    require_in,
)

NEEDED = ("recommender", "user", "seed", "target", "turn", "shown", "delta")
NAMES = "You look for", "Shown before", "Shown now"
# A line each. No colon behind the names: it would be a conversation of three speakers.
CONTEXT = "\n".join(f"{name} \N{EM DASH} {{}}" for name in NAMES)
WIDTH, HEIGHT, NAME_HEIGHT, GAP = 130, 120, 18, 10
# What is looked for in the middle above, and below it what was shown, from left to right.
CORNERS = (
    ((WIDTH + GAP) // 2, 0),
    (0, NAME_HEIGHT + HEIGHT + GAP),
    (WIDTH + GAP, NAME_HEIGHT + HEIGHT + GAP),
)
# Turn and item before the first line of a dialogue.
NOTHING_YET = (-2, "")


@dataclass(frozen=True)
class TurnDraft:
    """A turn after two shown items, neither of which is the target."""

    recommender: str
    user: str
    target: str
    turn: int
    previous: str
    shown: str
    delta: float


def read_turns(path: Path) -> list[TurnDraft]:
    """Losses and gains of a log. Raises DialoguesUnfit if there are none."""
    if turns := losses_and_gains(path):
        return turns
    raise DialoguesUnfit(_("{file} has no turn that was a loss or a gain.").format(file=path.name))


def losses_and_gains(path: Path) -> list[TurnDraft]:
    """Each situation once."""
    before: dict[tuple[Any, ...], tuple[int, str]] = {}
    turns: dict[tuple[Any, ...], TurnDraft] = {}
    for number, row in log_rows(path, NEEDED):
        dialogue = (row["recommender"], row["user"], row["seed"], row["target"])
        # Of each dialogue the last turn alone: a log has millions of them.
        last, previous = before.get(dialogue, NOTHING_YET)
        before[dialogue] = row["turn"], row["shown"]
        # The last turn of a dialogue has no critique, and nothing to decide.
        if not row["delta"] or row["shown"] == row["target"]:
            continue
        if last != row["turn"] - 1:
            raise DialoguesUnfit(
                _(
                    "{file}, line {line}: turn {turn} comes before the turn that led to "
                    "it. Keep the lines of each dialogue in their order."
                ).format(file=path.name, line=number, turn=row["turn"]),
                code="turn_order",
            )
        turns.setdefault(
            (row["recommender"], row["target"], row["turn"], previous, row["shown"]),
            TurnDraft(
                recommender=row["recommender"],
                user=row["user"],
                target=row["target"],
                turn=row["turn"] + 1,
                previous=previous,
                shown=row["shown"],
                delta=row["delta"],
            ),
        )
    return list(turns.values())


def drawn_turns(
    turns: Sequence[TurnDraft],
    accepted: Mapping[str, Sequence[str]],
    *,
    per_target: int = 2,
    seed: int = 0,
) -> list[TurnDraft]:
    """For each target losses and gains in turns, and of each a turn's number before a dialogue.

    Targets with fewer than two alternatives give nothing to choose between; what is shown must not
    be acceptable itself. A target starts with a loss or a gain at random, so that an odd number
    favours neither.
    """
    rng = np.random.default_rng(seed)
    drawn: list[TurnDraft] = []
    for target in sorted({one.target for one in turns}):
        others = [one for one in dict.fromkeys(accepted.get(target, ())) if one != target]
        if len(others) < 2:
            continue
        fit = [one for one in turns if one.target == target and one.shown not in others]
        heaps = [[one for one in fit if (one.delta < 0) == is_loss] for is_loss in (True, False)]
        if rng.random() < 0.5:
            heaps.reverse()
        for number in range(per_target):
            if heap := heaps[number % 2]:
                turn = rng.choice(sorted({one.turn for one in heap}))
                at_turn = [one for one in heap if one.turn == turn]
                chosen = at_turn[int(rng.integers(len(at_turn)))]
                heap.remove(chosen)
                drawn.append(chosen)
    if not drawn:
        raise DialoguesUnfit(
            _("No target of the dialogues has two alternatives and a fitting turn.")
        )
    return [drawn[place] for place in rng.permutation(len(drawn))]


@dataclass(frozen=True)
class SwitchingItems:
    turns: Sequence[TurnDraft]
    items: Sequence[ItemDraft]
    nearest: Sequence[str]
    catalogue: str
    seed: int
    per_target: int
    n_left_out: int
    kind: ClassVar[DialogueStudy.Kind] = DialogueStudy.Kind.SWITCHING

    @property
    def draft(self) -> StudyDraft:
        return StudyDraft(kind="rating", items=self.items)

    @property
    def origin(self) -> dict[str, Any]:
        return {
            "catalogue": self.catalogue,
            "seed": self.seed,
            "per_target": self.per_target,
            "n_targets_left_out": self.n_left_out,
        }

    def store(self, dialogues: DialogueStudy) -> None:
        keys = dict(dialogues.study.items.values_list("key", "pk"))
        RecordedTurn.objects.bulk_create(
            RecordedTurn(dialogues=dialogues, item_id=keys[item.key], nearest=nearest, **vars(turn))
            for turn, item, nearest in zip(self.turns, self.items, self.nearest, strict=True)
        )


def switching_items(
    log: Path,
    catalogue: Catalogue,
    accepted: Mapping[str, Sequence[str]],
    *,
    per_target: int = 2,
    seed: int = 0,
) -> SwitchingItems:
    """Raises DialoguesUnfit."""
    turns = read_turns(log)
    require_same_items(catalogue, turns)
    drawn = drawn_turns(turns, accepted, per_target=per_target, seed=seed)
    require_in(catalogue, {name for one in drawn for name in accepted[one.target]})
    items = [_item(number, one, catalogue, accepted) for number, one in enumerate(drawn, 1)]
    return SwitchingItems(
        turns=drawn,
        items=items,
        nearest=[
            _nearest(catalogue, one.shown, [each.key for each in item.candidates])
            for item, one in zip(items, drawn, strict=True)
        ],
        catalogue=catalogue.source,
        seed=seed,
        per_target=per_target,
        n_left_out=len({one.target for one in turns} - {one.target for one in drawn}),
    )


def require_same_items(catalogue: Catalogue, turns: Sequence[TurnDraft]) -> None:
    """Refuse a catalogue that lacks items, or that has other items under the same ids (as drawn
    ones with another seed): what was nearer to the target in the log must be nearer in it."""
    require_in(catalogue, {name for one in turns for name in (one.target, one.previous, one.shown)})
    target, previous, shown = (
        catalogue.numbers([getattr(one, name) for one in turns])
        for name in ("target", "previous", "shown")
    )
    before = catalogue.squared_distance(previous, target)
    delta = before - catalogue.squared_distance(shown, target)
    is_other = np.sign(delta) != np.sign([one.delta for one in turns])
    if not is_other.any():
        return
    one = turns[int(is_other.argmax())]
    raise DialoguesUnfit(
        _(
            "The log is of other items than {catalogue}: in {n} of {turns} turns what the log "
            "calls nearer to the target is not, first at turn {turn} about {target}. Name the "
            "catalogue that the dialogues were simulated with, and the seed that it was drawn by."
        ).format(
            catalogue=catalogue.source,
            n=f"{int(is_other.sum()):,}",
            turns=f"{len(turns):,}",
            turn=one.turn,
            target=one.target,
        ),
        code="other_items",
    )


def _nearest(catalogue: Catalogue, shown: str, others: Sequence[str]) -> str:
    number = catalogue.number_of[shown]
    distance = catalogue.squared_distance(catalogue.numbers(others), np.array(number))
    return others[int(distance.argmin())]


def _item(
    number: int, turn: TurnDraft, catalogue: Catalogue, accepted: Mapping[str, Sequence[str]]
) -> ItemDraft:
    """The key is only a number: it must not reveal whether a turn was a loss."""
    others = [one for one in dict.fromkeys(accepted[turn.target]) if one != turn.target]
    words = [product_words(catalogue, one) for one in (turn.target, turn.previous, turn.shown)]
    pictures = [product_picture(catalogue, one) for one in (turn.target, turn.previous, turn.shown)]
    return ItemDraft(
        key=f"turn-{number}",
        line=number,
        context=CONTEXT.format(*words),
        picture=one_picture([one for one in pictures if one]) if all(pictures) else None,
        candidates=tuple(product_candidate(catalogue, one) for one in others),
    )


def one_picture(pictures: Sequence[PictureDraft]) -> PictureDraft:
    """One drawing of the three named products, as large as fits on a phone; each keeps its own ids
    inside."""
    parts = [
        f'<text x="{x + WIDTH / 2:g}" y="{y + 12}" text-anchor="middle" font-size="11" '
        f'font-family="sans-serif">{name}</text>'
        f'<image x="{x}" y="{y + NAME_HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'href="data:{one.media_type};base64,{b64encode(one.content).decode()}"/>'
        for name, (x, y), one in zip(NAMES, CORNERS, pictures, strict=True)
    ]
    size = f"0 0 {2 * WIDTH + GAP} {2 * (NAME_HEIGHT + HEIGHT) + GAP}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}">'
    return PictureDraft("image/svg+xml", "".join([head, *parts, "</svg>"]).encode())
