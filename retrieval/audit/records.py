from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal

from presentation.numbers import plain_values
from retrieval.exports.grades import CollectionSizes

Severity = Literal["refused", "defect", "note"]
FileKind = Literal[
    "judged pools",
    "alternatives",
    "dialogue starts",
    "batch",
    "qrels",
    "assessors",
    "run",
    "unknown",
]
# Counts of a file, as plain values: each kind of file has its own.
Facts = Mapping[str, Any]
# Published numbers by name, as printed: their decimals are the precision.
Claims = Mapping[str, str]
# Lines of a finding that JSON and pages list; `n` counts all.
MOST_LINES = 20


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a reader must know of a file.

    A file with what is `refused` would be silently misread; a `defect` can be read, and makes
    numbers mean something else than they seem; a `note` is neither.
    """

    name: str
    severity: Severity
    text: str
    n: int = 1
    of: int | None = None
    lines: tuple[int, ...] = ()

    def record(self) -> dict[str, Any]:
        return {**asdict(self), "lines": list(self.lines[:MOST_LINES])}


@dataclass(frozen=True)
class ClaimChecked:
    name: str
    claimed: float
    counted: float
    explanation: str

    @property
    def holds(self) -> bool:
        return not self.explanation

    def record(self) -> dict[str, Any]:
        return {**plain_values(asdict(self)), "holds": self.holds}


@dataclass(frozen=True)
class AuditedFile:
    """A file, what it was recognised as, and what is to be said of it.

    `facts` are empty where it is refused; `related` is the file that it was compared with.
    """

    path: Path
    kind: FileKind
    n_lines: int
    n_rows: int = 0
    findings: tuple[Finding, ...] = ()
    facts: Facts = field(default_factory=dict)
    claims: tuple[ClaimChecked, ...] = ()
    related: tuple[Path, ...] = ()

    @property
    def is_refused(self) -> bool:
        return any(one.severity == "refused" for one in self.findings)

    def of(self, severity: Severity) -> list[Finding]:
        return [one for one in self.findings if one.severity == severity]

    def record(self) -> dict[str, Any]:
        return {
            "file": self.path.name,
            "kind": self.kind,
            "n_lines": self.n_lines,
            "n_rows": self.n_rows,
            "findings": [one.record() for one in self.findings],
            "facts": dict(self.facts),
            "claims": [one.record() for one in self.claims],
            "related": [path.name for path in self.related],
        }


@dataclass(frozen=True)
class Audit:
    files: tuple[AuditedFile, ...]
    totals: Facts = field(default_factory=dict)

    @property
    def n_defects(self) -> int:
        return sum(len(one.of("defect")) for one in self.files)

    @property
    def refused(self) -> Sequence[AuditedFile]:
        return [one for one in self.files if one.is_refused]

    def record(self) -> dict[str, Any]:
        return {
            "files": [one.record() for one in self.files],
            "totals": dict(self.totals),
            "n_defects": self.n_defects,
            "n_refused": len(self.refused),
        }


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
