"""A study as a dataset: Parquet tables, to which apps above add theirs, and a card, in a folder.

No table names a worker or an amount of money, so whoever may export may have it. The card is a
README.md with the front matter that Hugging Face reads:
https://huggingface.co/docs/hub/datasets-cards, https://github.com/huggingface/hub-docs/blob/main/datasetcard.md
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from django.db.models import Count, Q

from annotation.exceptions import FolderUnusable, LicenseUnknown, require
from annotation.exports import item_rows, judgment_rows, label_rows
from annotation.models import (
    Candidate,
    Judgment,
    Label,
    Protocol,
    Study,
    Submission,
)
from annotation.protocols.documents import read_document
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import current_document
from annotation.result_kinds.agreement import current_agreement, list_alphas
from annotation.study_facts import simulation_notice
from console.registrations import load_registrations
from presentation.files import write_whole
from presentation.numbers import count_of
from presentation.row_files import PartBuffer, RowFile, row_parquet


@dataclass(frozen=True)
class DatasetTable:
    place: int
    name: str
    about: str
    rows: Callable[[Study], RowFile]
    has_rows: Callable[[Study], bool] = lambda study: True
    section: Callable[[Study], str] | None = None


_tables: dict[str, DatasetTable] = {}
_counts: dict[str, Callable[[Study], int]] = {}


def register_dataset_table(table: DatasetTable) -> None:
    _tables[table.name] = table


def register_dataset_count(name: str, count: Callable[[Study], int]) -> None:
    _counts[name] = count


def table_sections(study: Study, names: Collection[str]) -> list[str]:
    sections = {name: _tables[name].section for name in names}
    return [section(study) for section in sections.values() if section is not None]


def dataset_tables(study: Study) -> dict[str, RowFile]:
    load_registrations()
    tables = sorted(_tables.values(), key=lambda table: table.place)
    return {table.name: table.rows(study) for table in tables if table.has_rows(study)}


for table in (
    DatasetTable(
        10,
        "judgments",
        "each judgment that was not rejected: what an annotator answered about a candidate under "
        "a question",
        judgment_rows,
    ),
    DatasetTable(20, "items", "each candidate with what annotators were shown", item_rows),
    DatasetTable(
        40,
        "labels",
        "one label a candidate by a rule, for each label set",
        label_rows,
        lambda study: Label.objects.filter(label_set__study=study).exists(),
    ),
):
    register_dataset_table(table)


UNKNOWN_LICENSE = "unknown"
# Those that data are mostly given under, by the names that Hugging Face has for them.
LICENSES = (
    *(UNKNOWN_LICENSE, "cc0-1.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0"),
    *("odc-by", "odbl", "pddl", "apache-2.0", "mit", "other"),
)
LICENSE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}")
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (10**6, "100K<n<1M"))
LOADING = """```python
from datasets import load_dataset

judgments = load_dataset("FOLDER", "judgments", split="train")
```

Tables are joined by `item` and `candidate`; submissions and judgments by `item`, `round` and \
`annotator`."""


def require_license(name: str) -> str:
    require(LICENSE.fullmatch(name), LicenseUnknown(name, LICENSES))
    return name


def dataset_card(
    study: Study, tables: Mapping[str, RowFile], counts: Mapping[str, int], *, license: str
) -> str:
    version = Protocol.objects.of(study).frozen().order_by("-number").first()
    document = current_document(study) if version is None else read_document(version.document)
    name = study.title or study.slug
    parts = [
        f"---\n{_front_matter(study, list(tables), counts, document, license)}---",
        f"# {_line(name)}",
        *filter(None, [simulation_notice(study)]),
        _summary(study, counts),
        "## Tables\n\n" + "\n".join(_table_lines(tables)),
        LOADING,
        _protocol(document, None if version is None else version.number),
        *table_sections(study, tables),
        _agreement(study),
        "## Annotators\n\nAnnotators stand under pseudonyms, which differ by study. The dataset "
        "has no account of a marketplace, no payment, and no words that annotators wrote.",
        f"## License\n\n{_license_sentence(license)}",
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(
    study: Study, names: list[str], counts: Mapping[str, int], document: ProtocolDocument,
    license: str,
) -> str:  # fmt: skip
    n = counts["judgments"]
    front = {
        "pretty_name": study.title or study.slug,
        "license": license,
        **({"language": [document.language]} if document.language else {}),
        "annotations_creators": [_annotations_creator(counts)],
        "size_categories": [next((size for most, size in SIZES if n < most), "1M<n<10M")],
        "tags": ["human-evaluation", "annotation"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == "judgments" else {}),
                "data_files": [{"split": "train", "path": f"data/{name}.parquet"}],
            }
            for name in names
        ],
    }
    import yaml  # slow, and for this file only

    return str(yaml.safe_dump(front, sort_keys=False, allow_unicode=True))


def _annotations_creator(counts: Mapping[str, int]) -> str:
    if counts["simulated"]:
        return "machine-generated"
    return "crowdsourced" if counts["assignments"] else "other"


def _summary(study: Study, counts: Mapping[str, int]) -> str:
    judgments = "Judgments" if counts["simulated"] else "Human judgments"
    return (
        f"{judgments} of the study `{study.slug}`: {counts['judgments']:,} judgments by "
        f"{count_of(counts['annotators'], 'annotator')} in {counts['submissions']:,} submissions "
        f"({counts['rejected']:,} of them rejected, whose judgments are left out), about "
        f"{counts['candidates']:,} candidates of {counts['items']:,} items, under "
        f"{count_of(counts['questions'], 'question')}."
    )


def _table_lines(tables: Mapping[str, RowFile]) -> list[str]:
    lines = ["| table | holds | columns |", "|---|---|---|"]
    for name, table in tables.items():
        columns = ", ".join(f"`{column}` ({kind})" for column, kind in table.columns.items())
        lines.append(f"| `{name}` | {_tables[name].about} | {columns} |")
    return lines


def _protocol(document: ProtocolDocument, number: int | None) -> str:
    version = f"Version {number} of the protocol."
    lines = ["## Annotation protocol", version if number else "The study as its questions stand."]
    if document.instructions:
        lines.append(_quoted(document.instructions))
    for question in document.study_questions:
        lines.append(
            f"**`{question.name}`** ({question.options.title}):\n\n{_quoted(question.wording)}"
        )
        if scale := _scale(question):
            lines.append(scale)
    if document.consent is not None:
        lines.append("Annotators agreed to:\n\n" + _quoted(document.consent.statement))
    return "\n\n".join(lines)


def _scale(question: ProtocolQuestion) -> str:
    labels = [*question.labels]
    if labels:
        return "Answers: " + "; ".join(_line(label) for label in labels) + "."
    ends = (question.low_label, question.middle_label, question.high_label)
    labels = [f"“{_line(end)}”" for end in ends if end]
    return f"From {' over '.join(labels[:-1])} to {labels[-1]}." if len(labels) > 1 else ""


def _agreement(study: Study) -> str:
    alphas = list_alphas(current_agreement(study))
    table = ["| question | round | Krippendorff's alpha | 95 % interval |", "|---|---|---|---|"]
    for row in (one for one in alphas if one.with_flagged and not one.by):
        value = "undefined" if row.value is None else f"{row.value:.3f}"
        interval = (
            "" if row.ci_low is None or row.ci_high is None
            else f"{row.ci_low:.3f} to {row.ci_high:.3f}"
        )  # fmt: skip
        reason = f" ({row.reason.replace('_', ' ')})" if row.value is None and row.reason else ""
        table.append(f"| {row.question} | {row.round} | {value}{reason} | {interval} |")
    found = "\n".join(table) if len(table) > 2 else "It has not been computed."
    return f"## Agreement\n\n{found}"


def _license_sentence(license: str) -> str:
    if license == UNKNOWN_LICENSE:
        return "Nobody has said yet under which license the data are given; ask before using them."
    return f"`{license}`, as the person who exported the dataset said."


def _line(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


# A dataset of the same study is the same file, whenever it was made.
TIME = (1980, 1, 1, 0, 0, 0)
CARD = "README.md"


def dataset_counts(study: Study) -> dict[str, int]:
    load_registrations()
    return {
        **Submission.objects.of(study).aggregate(
            submissions=Count("pk"),
            rejected=Count("pk", filter=Q(status=Submission.Status.REJECTED)),
            simulated=Count("pk", filter=Q(is_simulated=True)),
        ),
        "judgments": Judgment.objects.of(study).accepted().count(),
        "annotators": study.annotators.count(),
        "candidates": Candidate.objects.filter(item__study=study).count(),
        "items": study.items.count(),
        "questions": study.questions.count(),
        **{name: count(study) for name, count in _counts.items()},
    }


def write_dataset(study: Study, folder: Path, *, license: str = UNKNOWN_LICENSE) -> list[Path]:
    require_license(license)
    tables = dataset_tables(study)
    try:
        (folder / "data").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"{folder} cannot be made: {error.strerror}.") from None
    card = folder / CARD
    write_whole(card, dataset_card(study, tables, dataset_counts(study), license=license))
    paths = [card]
    for name, table in tables.items():
        path = folder / "data" / f"{name}.parquet"
        write_whole(path, row_parquet(table))
        paths.append(path)
    return paths


def dataset_zip(study: Study, license: str = UNKNOWN_LICENSE) -> Iterator[bytes]:
    require_license(license)
    tables = dataset_tables(study)
    return _zipped(
        study.slug,
        tables,
        # Counted once the tables are out: of a million judgments that takes a while, and whoever
        # waits for a file waits for its first byte.
        lambda: dataset_card(study, tables, dataset_counts(study), license=license),
    )


def _zipped(slug: str, tables: dict[str, RowFile], card: Callable[[], str]) -> Iterator[bytes]:
    sink = PartBuffer()
    with ZipFile(cast(IO[bytes], sink), "w") as archive:
        for name, table in tables.items():
            # Parquet is compressed already.
            yield from _member(
                archive, sink, f"{slug}/data/{name}.parquet", ZIP_STORED, row_parquet(table)
            )
        yield from _member(archive, sink, f"{slug}/{CARD}", ZIP_DEFLATED, [card().encode()])
    yield from sink.drain()


def _member(
    archive: ZipFile, sink: PartBuffer, name: str, compression: int, parts: Iterable[bytes]
) -> Iterator[bytes]:
    info = ZipInfo(name, TIME)
    info.compress_type = compression
    with archive.open(info, "w", force_zip64=True) as member:
        for part in parts:
            member.write(part)
            yield from sink.drain()
