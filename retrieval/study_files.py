"""The files of studies that retrieval registers: `annotation.study_files` imports this module."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from django.utils.translation import gettext_lazy as _

from accounts.roles import Permission
from annotation.assignment_facts import assignment_ids
from annotation.exceptions import StudyUnfit
from annotation.exports import item_stretches
from annotation.models import Candidate, Item, Judgment, Study, Submission
from annotation.readers.drafts import FileReadings
from annotation.readers.pooled_batch import HIT, SLOT, TARGET
from annotation.readers.tables import kind_of
from annotation.study_files import (
    TEXT,
    Download,
    Offer,
    RowDownload,
    register_file,
    register_table,
)
from presentation.files import write_whole
from presentation.numbers import group_values
from presentation.row_files import RowFile, csv_parts
from retrieval.audit.collections import ALTERNATIVE_COLUMNS, qid_of
from retrieval.exceptions import CatalogueUnfit, PoolFileFaults
from retrieval.exports.assessors import (
    FindIds,
    MarketplaceIds,
    assessor_lines,
    ids_of,
    no_ids,
    provenance_rows,
)
from retrieval.exports.qrels import (
    Source,
    has_qrels,
    judgment_source,
    pairs_of,
    qrel_rows,
    stream_qrels,
)
from retrieval.models import PooledTopic, PoolStudy
from retrieval.pools.catalogue import document_names
from retrieval.pools.pool_files import read_pool
from retrieval.text_lines import each_text_line
from retrieval.trec_layouts import SIMULATED

TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


def write_released_layout(
    source: Source,
    folder: Path,
    *,
    catalogue: Path | None = None,
    pool: Path | None = None,
    find_ids: FindIds = no_ids,
    readings: FileReadings | None = None,
) -> list[Path]:
    """Write the files into a folder, and return them: pools with ticks, alternatives, numbers.

    An item's number is its place in the catalogue, from 0, or its place among all by name. A
    target is the document that its topic is about, as the pool has it: that of the file, or the
    stored one that the study was made of; without either, topics are taken for documents.
    """
    if not source.scale.is_binary:
        raise StudyUnfit(
            f"Question '{source.scale.question}' is not asked by ticks, and this layout has no "
            "grades. Write qrels.",
            code="not_ticks",
        )
    folder.mkdir(parents=True, exist_ok=True)
    slug = source.study.slug
    readings = readings or FileReadings()
    targets = _targets(source.study, pool, readings)
    numbers = _catalogue(catalogue, readings) if catalogue else _by_name(source, targets)
    parts = {
        f"judged_targets_{slug}.csv": csv_parts(*_pools(source, targets, find_ids)),
        f"alter_target_ids_{slug}.csv": csv_parts(
            ALTERNATIVE_COLUMNS, _alternatives(source, targets, numbers)
        ),
        f"docids_{slug}.csv": csv_parts(("docno", "docid"), numbers.items()),
    }
    for name, content in parts.items():
        write_whole(folder / name, content)
    return [folder / name for name in parts]


def _targets(study: Study, pool: Path | None, readings: FileReadings) -> dict[str, str]:
    if pool is not None:
        targets = read_pool(pool, report=readings.add(pool)).targets
        return {one.topic: one.docno for one in targets if one.docno}
    versions = PoolStudy.objects.filter(study=study).values("version")
    return dict(
        PooledTopic.objects.filter(version__in=versions)
        .exclude(docno="")
        .values_list("topic", "docno")
    )


def _pools(
    source: Source, targets: Mapping[str, str], find_ids: FindIds
) -> tuple[list[str], Iterator[list[Any]]]:
    study = source.study
    submissions = Submission.objects.of(study).accepted().filter(round=source.round)
    items = list(submissions.values_list("item", flat=True))
    names_assessors = len(items) > len(set(items))
    pools = Candidate.objects.filter(item__study=study).values_list("item", flat=True)
    n_slots = max(Counter(pools).values(), default=0)
    slots = range(1, n_slots + 1)
    name = SLOT.removeprefix("Input.")
    header = [TARGET, *(f"{SLOT}{n}" for n in slots), HIT, *(f"{name}{n}" for n in slots)]
    if names_assessors:
        header.append("WorkerId")
    if has_simulated := submissions.filter(is_simulated=True).exists():
        header.append(SIMULATED)
    rows = _pool_rows(source, targets, n_slots, find_ids, names_assessors=names_assessors)
    return header, (row if has_simulated else row[:-1] for row in rows)


def _pool_rows(
    source: Source,
    targets: Mapping[str, str],
    n_slots: int,
    find_ids: FindIds,
    *,
    names_assessors: bool,
) -> Iterator[list[Any]]:
    for items in item_stretches(source.study):
        rows_of_pools = (
            Candidate.objects.filter(item__in=items)
            .order_by("position", "pk")
            .values_list("item", "pk", "key")
        )
        pools = group_values((item, (pk, key)) for item, pk, key in rows_of_pools)
        ticks: dict[int, dict[int, float]] = defaultdict(dict)
        judged = Judgment.objects.filter(submission__item__in=items, candidate__isnull=False)
        judged = judged.filter(question__name=source.scale.question).order_by()
        for submission, candidate, value in judged.values_list("submission", "candidate", "value"):
            ticks[submission][candidate] = value
        in_order = (
            Submission.objects.filter(item__in=items, round=source.round)
            .accepted()
            .order_by("item__position", "item", "annotator__pseudonym")
        )
        names = ("pk", "item", "item__key", "annotator__pseudonym", "is_simulated")
        read = list(in_order.values_list(*names))
        ids = ids_of([pk for pk, *_ in read], find_ids)
        for pk, item, key, assessor, is_simulated in read:
            hit = ids.get(pk, MarketplaceIds()).hit or f"{source.study.slug}-{item}"
            pool = pools[item]
            empty = [""] * (n_slots - len(pool))
            marks = [_tick(source, ticks[pk].get(candidate)) for candidate, _ in pool]
            row = [targets.get(key, key), *(name for _, name in pool), *empty, hit, *marks, *empty]
            yield [*row, *([assessor] if names_assessors else []), is_simulated]


def _tick(source: Source, value: float | None) -> str:
    grade = None if value is None else source.scale.grade(value)
    return "" if grade is None else str(grade > 0)


def _alternatives(
    source: Source, targets: Mapping[str, str], numbers: Mapping[str, int]
) -> Iterator[list[Any]]:
    relevant = group_values(
        (pair.topic, _number(numbers, pair.docno)) for pair in pairs_of(source) if pair.grade
    )
    for topic, alternatives in relevant.items():
        docno = targets.get(topic, topic)
        target = _number(numbers, docno)
        yield [docno, target, ",".join(alternatives), qid_of(target, alternatives), qid_of(target)]


def _number(numbers: Mapping[str, int], name: str) -> str:
    if name not in numbers:
        raise CatalogueUnfit(
            f"The catalogue has no '{name}', which the study has. Where that is a topic and no "
            "document, name the pool that says which document it is about (--pool).",
            code="item_unknown",
        )
    return str(numbers[name])


def _by_name(source: Source, targets: Mapping[str, str]) -> dict[str, int]:
    topics = Item.objects.filter(study=source.study).values_list("key", flat=True)
    keys = {targets.get(topic, topic) for topic in topics}
    pooled = Candidate.objects.filter(item__study=source.study)
    keys |= {*pooled.order_by().values_list("key", flat=True).distinct()}
    return {name: number for number, name in enumerate(sorted(keys))}


def _catalogue(path: Path, readings: FileReadings) -> dict[str, int]:
    report = readings.add(path)
    if kind_of(path) in TABLES:
        return {name: n for n, name in enumerate(document_names(path, report=report))}
    numbers: dict[str, int] = {}
    for line, text in each_text_line(path, PoolFileFaults, report=report):
        name = text.strip()
        if numbers.setdefault(name, line - 1) != line - 1:
            raise PoolFileFaults.of_one(
                path, f"'{name}' is on line {numbers[name] + 1} already.", "repeated", line=line
            )
    return numbers


PART_BYTES = 1 << 20


def own_grades(study: Study) -> Iterator[str]:
    return assessor_lines(judgment_source(study))


def line_provenance(study: Study) -> RowFile:
    return provenance_rows(judgment_source(study), find_ids=assignment_ids)


def released_zip(study: Study) -> Iterator[bytes]:
    archive = BytesIO()
    with TemporaryDirectory() as folder:
        files = write_released_layout(judgment_source(study), Path(folder), find_ids=assignment_ids)
        with ZipFile(archive, "w", ZIP_DEFLATED) as packed:
            for path in files:
                packed.write(path, path.name)
    archive.seek(0)
    return iter(partial(archive.read, PART_BYTES), b"")


def _is_of_alternatives(study: Study) -> bool:
    return study.kind == Study.Kind.ALTERNATIVES


register_table(
    "qrels",
    RowDownload(_("qrels: topic, document and relevance"), qrel_rows),
    Offer(110, fits=has_qrels, is_of_judgments=True),
)
register_table(
    "provenance",
    RowDownload(
        _("what each line of the qrels was made of: judgments, with their HIT and assignment"),
        line_provenance,
        Permission.VIEW_WORKERS,
    ),
    Offer(120, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "qrels.txt",
    Download(TEXT, _("TREC qrels"), stream_qrels),
    Offer(130, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "qrels_jg.txt",
    Download(
        TEXT, _("each annotator's grades, of every round, as trec_eval reads qrels_jg"), own_grades
    ),
    Offer(140, fits=has_qrels, is_of_judgments=True),
)
register_file(
    "released_layout.zip",
    Download(
        "application/zip",
        _("pools with ticks and alternatives by number, in the layout of Fashion-AlterEval"),
        released_zip,
        permission=Permission.VIEW_WORKERS,
    ),
    Offer(150, fits=_is_of_alternatives, is_of_judgments=True),
)
