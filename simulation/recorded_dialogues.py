import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.readers.drafts import CandidateDraft, ItemDraft, PictureDraft, StudyDraft
from annotation.readers.rows import unstorable
from presentation.files import plain_file
from simulation.catalogue import Catalogue
from simulation.drawn_products import title
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy, RecordedTurn
from simulation.models.dialogue_studies import ID_LENGTH

LARGEST = {"seed": 2**63 - 1, "turn": 10_000}
# More than any embedding has, less than the limit of any database.
MOST_DELTA = 1e9
WORD = gettext_lazy("a text that is not empty or long, without NUL or half a surrogate pair")
WANTED = {
    **dict.fromkeys(("recommender", "user", "target", "shown"), WORD),
    **dict.fromkeys(("seed", "turn"), gettext_lazy("a whole number from 0 on")),
    "delta": gettext_lazy("a number up to a thousand million, or null"),
    "found": gettext_lazy("true or false"),
}

IMPORTS: dict[str, str] = {
    DialogueStudy.Kind.SWITCHING: "import_switching_study",
    DialogueStudy.Kind.OUTCOMES: "import_outcome_study",
}


def log_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with plain_file(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                yield number, _row(path, number, line, needed)
    except (OSError, UnicodeDecodeError) as error:
        raise DialoguesUnfit(
            _("{file} cannot be read: {error}.").format(file=path.name, error=error)
        ) from None


def require_log(name: str, first_line: str) -> None:
    _row(Path(name), 1, first_line, ("recommender", "user", "seed", "target", "turn", "shown"))


def _row(path: Path, number: int, line: str, needed: Sequence[str]) -> dict[str, Any]:
    at = f"{path.name}, line {number}"
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        raise DialoguesUnfit(_("{where}: not a JSON object.").format(where=at)) from None
    if not isinstance(row, dict):
        raise DialoguesUnfit(_("{where}: not a JSON object.").format(where=at))
    for name in needed:
        if name not in row:
            raise DialoguesUnfit(
                _("{where}: {field} is missing. Name a file that simulate --log wrote.").format(
                    where=at, field=name
                )
            )
        if not _is_fit(name, row[name]):
            raise DialoguesUnfit(
                _("{where}: {field} must be {wanted}.").format(
                    where=at, field=name, wanted=WANTED[name]
                )
            )
    return row


def _is_fit(name: str, value: Any) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if name in ("seed", "turn"):
        return is_number and 0 <= value <= LARGEST[name]
    if name == "found":
        return isinstance(value, bool)
    if name == "delta":
        # A whole number of JSON may be beyond any float.
        is_number = is_number or isinstance(value, float)
        return value is None or (is_number and -MOST_DELTA <= value <= MOST_DELTA)
    return isinstance(value, str) and 0 < len(value) <= ID_LENGTH and not unstorable(value)


def log_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def require_in(catalogue: Catalogue, names: Iterable[str]) -> None:
    if unknown := sorted(set(names) - catalogue.number_of.keys()):
        raise DialoguesUnfit(
            _(
                "{name} is not in the catalogue ({catalogue}). Name the catalogue "
                "that the dialogues are of."
            ).format(name=unknown[0], catalogue=catalogue.source),
            code="item_unknown",
        )


def product_words(catalogue: Catalogue, name: str) -> str:
    number = catalogue.number_of[name]
    if catalogue.captions:
        return catalogue.captions[number]
    return title(catalogue.attributes.describe(number)) if catalogue.attributes else name


def product_picture(catalogue: Catalogue, name: str) -> PictureDraft | None:
    if catalogue.picture is None:
        return None
    content = catalogue.picture(catalogue.number_of[name])
    is_drawing = content.lstrip().startswith((b"<svg", b"<?xml"))
    return PictureDraft("image/svg+xml" if is_drawing else "image/png", content)


def product_candidate(catalogue: Catalogue, name: str) -> CandidateDraft:
    """Without a system: workers must not see whose it is, and several recommenders may share it."""
    return CandidateDraft(
        key=name, text=product_words(catalogue, name), picture=product_picture(catalogue, name)
    )


def dialogues_of(study: Study, kind: str) -> DialogueStudy:
    dialogues = DialogueStudy.objects.filter(study=study, kind=kind).first()
    if dialogues is None:
        raise DialoguesUnfit(
            _("Study '{study}' is not of recorded dialogues. Make one with {command}.").format(
                study=study.slug, command=IMPORTS[kind]
            )
        )
    return dialogues


def origin_of(dialogues: DialogueStudy) -> dict[str, Any]:
    names = ["log_name", "log_sha256", "catalogue", "seed", "n_targets_left_out"]
    names.append("per_target" if dialogues.kind == DialogueStudy.Kind.SWITCHING else "final_user")
    return {name: getattr(dialogues, name) for name in names}


# Items of a switching study: turns of recorded dialogues, as many losses as gains by a seed. A
# worker sees the target, the item before, the item now, and alternatives of the target to take
# instead, but not the recommender, nor whether the turn was a loss or a gain.
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
    delta = catalogue.squared_distance(previous, target) - catalogue.squared_distance(shown, target)
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
