"""Items of a switching study: turns of recorded dialogues, as many losses as gains by a seed.

A worker sees the target, the item before and the item now, and the target's alternatives to take
instead. Which recommender it was, and whether the turn was a loss or a gain, stays here.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from django.db import transaction

from accounts.models import Team
from annotation.imports import Imported, import_study
from annotation.models import Study
from annotation.protocols.templates import read_protocol
from annotation.readers.drafts import CandidateDraft, ItemDraft, PictureDraft, StudyDraft
from simulation.catalogue import Catalogue
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy, RecordedTurn
from simulation.product_drawings import title

NEEDED = ("recommender", "user", "seed", "target", "turn", "shown", "delta")
WIDTH, HEIGHT = 130, 120


@dataclass(frozen=True)
class TurnDraft:
    """A turn at which somebody has seen two items, neither of which they look for."""

    recommender: str
    user: str
    target: str
    turn: int
    previous: str
    shown: str
    delta: float


def read_turns(path: Path) -> list[TurnDraft]:
    """The turns of a log of `simulate --log` that were a loss or a gain, each situation once."""
    before: dict[tuple[Any, ...], str] = {}
    turns: dict[tuple[Any, ...], TurnDraft] = {}
    for number, row in _rows(path):
        dialogue = (row["recommender"], row["user"], row["seed"], row["target"])
        previous = before.get((*dialogue, row["turn"] - 1))
        before[*dialogue, row["turn"]] = row["shown"]
        # The last turn of a dialogue has no critique, and nothing to decide.
        if not row["delta"] or row["shown"] == row["target"]:
            continue
        if previous is None:
            raise DialoguesUnfit(
                f"{path.name}, line {number}: turn {row['turn']} comes before the turn that led "
                "to it. Keep the lines of each dialogue in their order."
            )
        situation = (row["recommender"], row["target"], row["turn"], previous, row["shown"])
        turns.setdefault(
            situation,
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
    if not turns:
        raise DialoguesUnfit(f"{path.name} has no turn that was a loss or a gain.")
    return list(turns.values())


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DialoguesUnfit(f"{path.name} cannot be read: {error}.") from None
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            raise DialoguesUnfit(f"{path.name}, line {number}: not a JSON object.") from None
        missing = [name for name in NEEDED if not isinstance(row, dict) or name not in row]
        if missing:
            raise DialoguesUnfit(
                f"{path.name}, line {number}: {missing[0]} is missing. Name a file that "
                "simulate --log wrote."
            )
        yield number, row


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
        raise DialoguesUnfit("No target of the dialogues has two alternatives and a fitting turn.")
    return [drawn[place] for place in rng.permutation(len(drawn))]


@transaction.atomic
def import_switching_study(
    *,
    log: Path,
    catalogue: Catalogue,
    accepted: Mapping[str, Sequence[str]],
    slug: str,
    per_target: int = 2,
    seed: int = 0,
    study_title: str = "",
    owner: Any = None,
    team: Team | None = None,
) -> Imported:
    """Make a study of turns of a log, ready to launch, with where each item comes from."""
    if Study.objects.filter(slug=slug).exists():
        raise DialoguesUnfit(f"There is a study '{slug}' already. Choose another name.")
    turns = read_turns(log)
    drawn = drawn_turns(turns, accepted, per_target=per_target, seed=seed)
    named = {name for one in drawn for name in (one.target, one.previous, one.shown)}
    named |= {name for one in drawn for name in accepted[one.target]}
    if unknown := sorted(named - catalogue.number_of.keys()):
        raise DialoguesUnfit(
            f"{unknown[0]} is not in the catalogue ({catalogue.source}). Name the catalogue that "
            "the dialogues are of."
        )
    items = [_item(number, one, catalogue, accepted) for number, one in enumerate(drawn, 1)]
    imported = import_study(
        draft=StudyDraft(kind="rating", items=items),
        path=log,
        slug=slug,
        title=study_title,
        owner=owner,
        team=team,
        protocol=read_protocol("switching"),
    )
    _store_origin(imported.study, log, catalogue, items, drawn, turns, per_target, seed)
    return imported


def _store_origin(
    study: Study,
    log: Path,
    catalogue: Catalogue,
    items: Sequence[ItemDraft],
    drawn: Sequence[TurnDraft],
    turns: Sequence[TurnDraft],
    per_target: int,
    seed: int,
) -> None:
    dialogues = DialogueStudy.objects.create(
        study=study,
        log_name=log.name,
        log_sha256=sha256(log.read_bytes()).hexdigest(),
        catalogue=catalogue.source,
        seed=seed,
        per_target=per_target,
        n_targets_left_out=len({one.target for one in turns} - {one.target for one in drawn}),
    )
    keys = dict(study.items.values_list("key", "pk"))
    RecordedTurn.objects.bulk_create(
        RecordedTurn(
            dialogues=dialogues,
            item_id=keys[item.key],
            nearest=_nearest(catalogue, one.shown, [each.key for each in item.candidates]),
            **vars(one),
        )
        for item, one in zip(items, drawn, strict=True)
    )


def _nearest(catalogue: Catalogue, shown: str, others: Sequence[str]) -> str:
    number = catalogue.number_of[shown]
    distance = catalogue.squared_distance(catalogue.numbers(others), np.array(number))
    return others[int(distance.argmin())]


def _item(
    number: int, turn: TurnDraft, catalogue: Catalogue, accepted: Mapping[str, Sequence[str]]
) -> ItemDraft:
    """The key is a bare number: it must not say whether a turn was a loss."""
    others = [one for one in dict.fromkeys(accepted[turn.target]) if one != turn.target]
    words = [_words(catalogue, one) for one in (turn.target, turn.previous, turn.shown)]
    pictures = [_picture(catalogue, one) for one in (turn.target, turn.previous, turn.shown)]
    return ItemDraft(
        key=f"turn-{number}",
        line=number,
        context="You look for: {}. Shown before: {}. Shown now: {}.".format(*words),
        picture=side_by_side([one for one in pictures if one]) if all(pictures) else None,
        candidates=tuple(
            CandidateDraft(key=one, text=_words(catalogue, one), picture=_picture(catalogue, one))
            for one in others
        ),
    )


def _words(catalogue: Catalogue, name: str) -> str:
    number = catalogue.number_of[name]
    if catalogue.captions:
        return catalogue.captions[number]
    return title(catalogue.attributes.describe(number)) if catalogue.attributes else name


def _picture(catalogue: Catalogue, name: str) -> PictureDraft | None:
    if catalogue.picture is None:
        return None
    content = catalogue.picture(catalogue.number_of[name])
    is_drawing = content.lstrip().startswith((b"<svg", b"<?xml"))
    return PictureDraft("image/svg+xml" if is_drawing else "image/png", content)


def side_by_side(pictures: Sequence[PictureDraft]) -> PictureDraft:
    """One drawing of several pictures, from left to right; each keeps its own ids inside."""
    parts = [
        f'<image x="{place * (WIDTH + 10)}" width="{WIDTH}" height="{HEIGHT}" '
        f'href="data:{one.media_type};base64,{b64encode(one.content).decode()}"/>'
        for place, one in enumerate(pictures)
    ]
    width = len(pictures) * (WIDTH + 10) - 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}">'
    return PictureDraft("image/svg+xml", "".join([head, *parts, "</svg>"]).encode())
