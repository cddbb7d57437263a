"""Published studies as manifests: `replications/papers/NAME.yaml` has a paper's data, tables and
printed values; `reproduce` computes the same values from the data.

A table names the function that computes it (`compute`), which takes the paths of the table's files
and the settings, and returns a record per cell. `rows` and `across` are the fields of a record
that name its row and its column. A record has `value`, and may have:

    n             how many items, systems or outputs the value is of
    ratings_mean  the mean of the human values
    as_printed    the value by the paper's own way of rounding or counting
    reason        why a printed value differs
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal

import yaml
from django.utils.module_loading import import_string

from replications.published_data import DatasetIncomplete
from validation.documents.terms import plain_signature

PAPERS = Path(__file__).parent / "papers"
DIGEST_CHARACTERS = 12
Verdict = Literal["equal", "explained", "differs", "not compared"]


@dataclass(frozen=True, kw_only=True)
class ReproducedCell:
    """A cell of a published table. `published` is NaN if the manifest has no printed value."""

    study: str
    table: str
    row: str
    column: str
    level: str
    value: float
    published: float
    decimals: int
    verdict: Verdict
    reason: str
    ratings_mean: float
    raters: str
    n: int | None
    signature: str


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """`published` has a list of values in the order of `columns` for each row."""

    name: str
    caption: str
    compute: str
    files: Sequence[str]
    rows: Sequence[str]
    across: Sequence[str]
    decimals: int
    columns: Sequence[str] = ()
    level: str = ""
    raters: str = ""
    rounding: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def reproduce(self, study: str, folder: Path) -> Iterator[ReproducedCell]:
        paths = [folder / name for name in self.files]
        digests = b"".join(sha256(path.read_bytes()).digest() for path in paths)
        content = sha256(digests).hexdigest()[:DIGEST_CHARACTERS]
        printed = {
            (row, column): value
            for row, values in self.published.items()
            for column, value in zip(self.columns, values, strict=True)
        }
        for record in import_string(self.compute)(*paths, **self.settings):
            row, column = (
                " ".join(str(record[name]) for name in names) for names in (self.rows, self.across)
            )
            value = nan if record["value"] is None else record["value"]
            published = printed.get((row, column), nan)
            # Counts are printed without decimals.
            decimals = 0 if isinstance(published, int) else self.decimals
            verdict = _compare(value, published, record.get("as_printed"), decimals)
            yield ReproducedCell(
                study=study,
                table=self.name,
                row=row,
                column=column,
                level=record.get("level", self.level),
                value=value,
                published=published,
                decimals=decimals,
                verdict=verdict,
                reason=record.get("reason", self.rounding) if verdict == "explained" else "",
                ratings_mean=record.get("ratings_mean", nan),
                raters=self.raters,
                n=record.get("n"),
                signature=plain_signature(
                    "published", table=f"{study}, {self.name}", **self.settings, input=content
                ),
            )


def _compare(value: float, published: float, as_printed: float | None, decimals: int) -> Verdict:
    if isnan(published):
        return "not compared"
    # Both neighbors of a half are its rounding: 54.25 is printed as 54.2 and as 54.3.
    half = 0.5 * 10.0**-decimals + 1e-9
    if abs(value - published) <= half:
        return "equal"
    explained = as_printed is not None and abs(as_printed - published) <= half
    return "explained" if explained else "differs"


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A paper; `not_here` lists what cannot be computed, and why."""

    name: str
    title: str
    short_title: str
    url: str
    folder: str
    data: str
    design: str
    tables: Sequence[PaperTable]
    not_here: Sequence[Mapping[str, str]] = ()

    def missing_files(self, folder: Path) -> list[str]:
        names = dict.fromkeys(name for table in self.tables for name in table.files)
        return [name for name in names if not (folder / name).is_file()]

    def reproduce(self, folder: Path) -> list[ReproducedCell]:
        """All cells of the tables whose files are in the folder; DatasetIncomplete if none is."""
        missing = self.missing_files(folder)
        tables = [table for table in self.tables if not {*table.files} & {*missing}]
        if not tables:
            raise DatasetIncomplete(
                f"{folder} does not contain {', '.join(missing)}. Get them from {self.data}."
            )
        return [cell for table in tables for cell in table.reproduce(self.short_title, folder)]


def read_manifest(name: str) -> Manifest:
    content = yaml.safe_load((PAPERS / f"{name}.yaml").read_text("utf-8"))
    tables = [PaperTable(**table) for table in content.pop("tables")]
    return Manifest(name=name, tables=tables, **content)


def paper_names() -> list[str]:
    return sorted(path.stem for path in PAPERS.glob("*.yaml"))
