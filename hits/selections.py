from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import chain, zip_longest
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _, ngettext

from annotation.models.studies import ItemQuerySet
from annotation.protocols.practice import practised_keys
from hits.exceptions import BatchUnfit, require
from hits.models import Batch, Hit
from metrics.expected_errors import enough_are_rated, expected_item_errors
from metrics.models import ScoringRun
from presentation.numbers import group_values
from stats.inference.active_labels import (
    LEAST_OF_A_PILOT,
    labelling_probabilities,
    systematic_sample,
)

# Of Batch.selection: nothing stands for all items, those imported later too.
ALL_ITEMS: dict[str, Any] = {}
REST: dict[str, Any] = {"rest": True}
MOST_NAMED = 5

OF_ROUND = "of_round"
RUN = "run"

# An item's primary key, key and condition.
Row = tuple[int, str, str]


def sample(n_items: int, seed: int) -> dict[str, Any]:
    return {"n": n_items, "seed": seed}


def least_sure(n_items: int, seed: int, *, run: int, question: int) -> dict[str, Any]:
    return sample(n_items, seed) | {RUN: run, "question": question}


def item_list(keys: Iterable[str]) -> dict[str, Any]:
    return {"keys": list(dict.fromkeys(keys))}


def of_round(selection: dict[str, Any], round_: int) -> dict[str, Any]:
    return (selection or REST) | {OF_ROUND: round_}


def items_without_hit(batch: Batch) -> ItemQuerySet:
    """The study's items without a HIT in this round and connection; without those of practice,
    whose right answers workers read."""
    beside = Hit.objects.filter(batch__in=Batch.objects.parts_beside(batch).order_by())
    items = batch.study.items.exclude(pk__in=beside.values("item"))
    if keys := practised_keys(batch.document):
        items = items.exclude(key__in=keys)
    if earlier := batch.selection.get(OF_ROUND):
        items = items.filter(pk__in=items_of_round(batch.study_id, earlier))
    return items


def items_of_round(study_id: int, round_: int) -> QuerySet[Hit, Any]:
    hits = Hit.objects.published().filter(batch__study=study_id, batch__round=round_)
    return hits.order_by().values("item").distinct()


def selected_items(draft: Batch) -> dict[int, float | None]:
    # By item key, the probability of being drawn; None for those picked by hand.
    rows: list[Row] = list(items_without_hit(draft).values_list("pk", "key", "condition"))
    if "keys" in draft.selection:
        return dict.fromkeys(_items_of_keys(draft, rows))
    if RUN in draft.selection:
        return _least_sure(draft, rows)
    if "n" in draft.selection:
        keys = draw(rows, n_items=draft.selection["n"], seed=draft.selection["seed"])
        probabilities = _shares(rows, keys)
        return {pk: probabilities[condition] for pk, _, condition in rows if pk in keys}
    return {pk: 1.0 for pk, _, _ in rows}


def _shares(rows: Sequence[Row], drawn: set[int]) -> dict[str, float | None]:
    # No probability is known if the sample is too small to reach every condition.
    available = Counter(row[2] for row in rows)
    taken = Counter(row[2] for row in rows if row[0] in drawn)
    if set(taken) != set(available):
        return dict.fromkeys(available)
    return {name: taken[name] / n for name, n in available.items()}


def _least_sure(draft: Batch, rows: Sequence[Row]) -> dict[int, float | None]:
    n_items, seed = draft.selection["n"], draft.selection["seed"]
    _require_enough(n_items, rows)
    require_judge(draft)
    errors = expected_item_errors(draft.selection[RUN], draft.selection["question"])
    middle = sum(errors.values()) / len(errors)
    # in random order within each condition, so that the sample is spread over the conditions
    ranked = sorted(rows, key=lambda row: (row[2], _rank(seed, row[1])))
    chances = labelling_probabilities(
        [errors.get(row[0], middle) for row in ranked], budget=n_items
    )
    start = int.from_bytes(_rank(seed, "")[:4]) / 2**32
    drawn = {ranked[at][0]: float(chances[at]) for at in systematic_sample(chances, start=start)}
    return {row[0]: drawn[row[0]] for row in rows if row[0] in drawn}


def require_judge(draft: Batch) -> None:
    run, question = draft.selection[RUN], draft.selection["question"]
    if enough_are_rated(draft.study, run=run, question=question):
        return
    require(
        ScoringRun.objects.of(draft.study).filter(pk=run).exists()
        and question in {one.pk for one in draft.study.questions.all()},
        BatchUnfit(
            _("The scores or the question that items are chosen by are gone."),
            code="selection_gone",
        ),
    )
    raise BatchUnfit(
        _(
            "Where the judge is least sure is learned from rated items: at least %(n)s of them "
            "must be scored and rated first."
        )
        % {"n": LEAST_OF_A_PILOT},
        code="pilot_too_small",
    )


def draw(rows: Sequence[Row], *, n_items: int, seed: int) -> set[int]:
    """Draw items by the seed, spread evenly over the conditions. An item's rank depends only on
    its key, so that a later import changes no other's."""
    _require_enough(n_items, rows)
    by_condition = group_values(
        (row[2], row) for row in sorted(rows, key=lambda row: _rank(seed, row[1]))
    )
    in_turn = chain.from_iterable(zip_longest(*by_condition.values()))
    return {row[0] for row in [row for row in in_turn if row is not None][:n_items]}


def _rank(seed: int, key: str) -> bytes:
    return sha256(f"{seed}\n{key}".encode()).digest()


def _require_enough(n_items: int, rows: Sequence[Row]) -> None:
    if not 1 <= n_items <= len(rows):
        items = ngettext("{n:,} item", "{n:,} items", n_items).format(n=n_items)
        raise BatchUnfit(
            ngettext(
                "{items} cannot be drawn: {n:,} item has no HIT. Choose 1 to {n:,}.",
                "{items} cannot be drawn: {n:,} items have no HIT. Choose 1 to {n:,}.",
                len(rows),
            ).format(items=items, n=len(rows)),
            code="too_few_items",
        )


def _items_of_keys(draft: Batch, rows: Sequence[Row]) -> list[int]:
    keys = set(draft.selection["keys"])
    matches = [pk for pk, key, _ in rows if key in keys]
    unavailable = sorted(keys - {key for _, key, _ in rows})
    if not unavailable:
        return matches
    existing = set(draft.study.items.filter(key__in=unavailable).values_list("key", flat=True))
    raise BatchUnfit(
        " ".join(_unavailable_messages(unavailable, existing)), code="items_unavailable"
    )


def _unavailable_messages(unavailable: Sequence[str], existing: set[str]) -> Iterable[str]:
    if unknown := [key for key in unavailable if key not in existing]:
        yield _("The study has no item {items}.").format(items=_quote_list(unknown))
    if assigned := [key for key in unavailable if key in existing]:
        yield _("A HIT of this round is there already for {items}.").format(
            items=_quote_list(assigned)
        )


def _quote_list(keys: Sequence[str]) -> str:
    names = ", ".join(f"'{key}'" for key in keys[:MOST_NAMED])
    if len(keys) <= MOST_NAMED:
        return names
    return _("{names} and {n} more").format(names=names, n=len(keys) - MOST_NAMED)


def n_out_elsewhere(batch: Batch) -> int:
    return (
        Hit.objects.published()
        .filter(batch__study=batch.study_id, batch__round=batch.round)
        .exclude(batch__connection=batch.connection_id)
        .order_by()
        .values("item")
        .distinct()
        .count()
    )
