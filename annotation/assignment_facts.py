from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from annotation.models import Study
from console.registrations import load_registrations

FindIds = Callable[[Collection[int]], dict[int, tuple[str, str]]]

_find_ids: list[FindIds] = []


def register_assignment_ids(find_ids: FindIds) -> None:
    _find_ids.append(find_ids)


def assignment_ids(submissions: Collection[int]) -> dict[int, tuple[str, str]]:
    load_registrations()
    return {pk: ids for find_ids in _find_ids for pk, ids in find_ids(submissions).items()}


@dataclass(frozen=True)
class AssignmentPrice:
    reward_usd: Decimal
    cost_usd: Callable[[int], Decimal]


_find_prices: list[Callable[[Study], AssignmentPrice | None]] = []


def register_assignment_price(find_price: Callable[[Study], AssignmentPrice | None]) -> None:
    _find_prices.append(find_price)


def assignment_price(study: Study) -> AssignmentPrice | None:
    load_registrations()
    prices = (find_price(study) for find_price in _find_prices)
    return next((price for price in prices if price is not None), None)


@dataclass(frozen=True)
class LaunchedBatch:
    key: int
    study: int
    round: int


FindBatches = Callable[[Collection[int]], Iterable[LaunchedBatch]]

_find_batches: list[FindBatches] = []


def register_launched_batches(find_batches: FindBatches) -> FindBatches:
    _find_batches.append(find_batches)
    return find_batches


def list_launched_batches(studies: Collection[int]) -> list[LaunchedBatch]:
    load_registrations()
    return [batch for find_batches in _find_batches for batch in find_batches(studies)]


@dataclass(frozen=True)
class DeskWork:
    list_name: str
    n: int
    first: int
    worker_id: str
    words: str


FindWork = Callable[[Study, Collection[str]], Mapping[str, Sequence[DeskWork]]]

_find_work: list[FindWork] = []


def register_annotator_work(find_work: FindWork) -> None:
    _find_work.append(find_work)


def annotator_work(study: Study, annotators: Collection[str]) -> dict[str, Sequence[DeskWork]]:
    load_registrations()
    return {name: work for find in _find_work for name, work in find(study, annotators).items()}
