"""Numbers that were published about a collection, beside those that its files give.

Where they differ, the ways of counting that people confuse are tried: the target counted as
relevant, lines with the header, rows without judgments, each picture once and never the target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from hashlib import file_digest
from pathlib import Path

from retrieval.audit.records import ClaimChecked, Claims
from retrieval.collection_sizes import CollectionSizes

CLAIMS = ("assessed", "with_relevant", "mean_relevant", "judged_per_topic", "prevalence")
# Table 2 of doi:10.1145/3705328.3748149, by the SHA-256 of the released files of shoes, of dresses.
PUBLISHED: dict[str, Claims] = {
    "64c5a78cdb9557e2f3207b29601ad330497b91c6a37e7b1e1f0dac68d0dd5730": {
        "assessed": "200",
        "with_relevant": "190",
        "mean_relevant": "3.5",
        "judged_per_topic": "14",
    },
    "4e1dd5ba73db372b4a74f70728886e403b1502476e1031f0a94ae588ebc6f230": {
        "assessed": "200",
        "with_relevant": "181",
        "mean_relevant": "3.5",
        "judged_per_topic": "14",
    },
}
CLEANED = "with each picture once in a pool and the target out of it"
UNEXPLAINED = "no way of counting tried here gives it"
Counting = tuple[float, str]


def read_claims(texts: Iterable[str]) -> dict[str, Claims]:
    """Published numbers by file, of texts as FILE:NAME=VALUE; ValueError for the first that is
    none."""
    claims: dict[str, dict[str, str]] = defaultdict(dict)
    for text in texts:
        file, _, claim = text.rpartition(":")
        name, _, value = (part.strip() for part in claim.partition("="))
        if not file.strip() or name not in CLAIMS or not value.replace(".", "", 1).isdecimal():
            form = f"FILE:NAME=VALUE, where NAME is one of {', '.join(CLAIMS)}"
            raise ValueError(f"{text}: it is not {form}")
        claims[file.strip()][name] = value
    return dict(claims)


def published_claims(path: Path) -> Claims:
    """What was published of this very file, if anything is known."""
    with path.open("rb") as file:
        return PUBLISHED.get(file_digest(file, "sha256").hexdigest(), {})


def claims_of(
    sizes: CollectionSizes,
    claims: Claims,
    *,
    n_rows: int,
    n_lines: int,
    path: Path,
    cleaned: CollectionSizes | None = None,
) -> tuple[ClaimChecked, ...]:
    """Each claim beside the number that the file gives, as it is and `cleaned`."""
    counted, once = _numbers(sizes), {} if cleaned is None else _numbers(cleaned)

    def countings(name: str, decimals: int) -> Iterator[Counting]:
        yield from _countings(name, sizes, (n_rows, n_lines), path, decimals)
        if name in once:
            yield once[name], f"{once[name]:,.{decimals}f} {CLEANED}"
        if name == "mean_relevant" and cleaned is not None:
            for value, explanation in _of_means(cleaned, decimals):
                yield value, f"{explanation}; {CLEANED}"

    return tuple(_checked(name, text, counted[name], countings) for name, text in claims.items())


def _numbers(sizes: CollectionSizes) -> dict[str, float]:
    return {
        "assessed": float(sizes.n_assessed),
        "with_relevant": float(sizes.n_with_relevant),
        "mean_relevant": sizes.mean_relevant,
        "judged_per_topic": sizes.judged_per_topic,
        "prevalence": sizes.prevalence,
    }


def _countings(
    name: str, sizes: CollectionSizes, n: tuple[int, int], path: Path, decimals: int
) -> Iterator[Counting]:
    """Other ways of counting the same, each with what to say where it gives what was claimed."""
    n_rows, n_lines = n
    if name == "mean_relevant":
        yield from _of_means(sizes, decimals)
    if name == "assessed":
        of_rows = f"{sizes.n_assessed:,} of {n_rows:,} rows hold judgments"
        yield n_rows, f"{n_rows:,} is the number of rows: {of_rows}"
        yield (
            n_lines,
            f"{n_lines:,} is the number of lines of {path.name}, with its header: {of_rows}",
        )


def _of_means(sizes: CollectionSizes, decimals: int) -> Iterator[Counting]:
    """To as many decimals as were claimed, and two at least."""
    mean, mean_of_all = sizes.mean_relevant, sizes.mean_relevant_of_all
    digits = max(2, decimals)
    yield (
        mean + 1,
        f"{mean:.{digits}f} + 1 = {mean + 1:.{digits}f}: the target itself was counted as relevant",
    )
    yield (
        mean_of_all,
        f"{mean_of_all:.{digits}f} over all topics, those without a relevant one too",
    )
    yield (
        mean_of_all + 1,
        f"{mean_of_all:.{digits}f} + 1 = {mean_of_all + 1:.{digits}f}: over all topics, and the "
        "target itself was counted as relevant",
    )


def _checked(
    name: str, text: str, counted: float, countings: Callable[[str, int], Iterator[Counting]]
) -> ClaimChecked:
    claimed = float(text)
    decimals = len(text.partition(".")[2])
    if _is_rounded(counted, claimed, decimals):
        return ClaimChecked(name, claimed, counted, "")
    for value, explanation in countings(name, decimals):
        if _is_rounded(value, claimed, decimals):
            return ClaimChecked(name, claimed, counted, explanation)
    return ClaimChecked(name, claimed, counted, UNEXPLAINED)


def _is_rounded(value: float, claimed: float, decimals: int) -> bool:
    """Whether a number that was rounded to so many decimals may have been this one."""
    return abs(value - claimed) <= 0.5 * 10.0**-decimals + 1e-9


def explained_by_lines(claim: ClaimChecked, path: Path, n_lines: int, n_rows: int) -> ClaimChecked:
    """A claim that nothing explained, if a related file has so many lines with its header."""
    if claim.name != "with_relevant" or claim.holds or claim.claimed != n_lines:
        return claim
    explanation = (
        f"{n_lines:,} is the number of lines of {path.name}, with its header: it lists "
        f"{n_rows:,} topics"
    )
    return ClaimChecked(claim.name, claim.claimed, claim.counted, explanation)
