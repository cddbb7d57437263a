"""Examples for the scorers' tests."""

from collections.abc import Iterable

from metrics.scorers.scorer import Example


def example(response: str, reference: str | None, **fields: str) -> Example:
    return Example(item="1", system="a", response=response, reference=reference, **fields)


def examples(pairs: Iterable[tuple[str, str | None]]) -> list[Example]:
    return [example(response, reference) for response, reference in pairs]
