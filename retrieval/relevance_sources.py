from collections.abc import Iterator

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Team
from annotation.models import LabelSet, Study, Submission
from annotation.relevance import Judged, Source
from retrieval.exports.qrels import Source as QrelsSource, judgment_source, label_source, pairs_of
from retrieval.models import Collection, CollectionFile
from retrieval.stored_files import (
    files_on_disk,
    vectors_of,
)
from retrieval.trec_files import read_qrels
from stats.arguments import Floats

__all__ = ["read_qrels"]

MOST_OFFERED = 300


def list_sources(teams: list[Team]) -> Iterator[Source]:
    yield from _label_sets(teams)
    yield from _rounds(teams)
    files = CollectionFile.objects.usable().qrels().filter(collection__team__in=teams)
    for file in files.select_related("collection").defer("faults").order_by("-pk")[:MOST_OFFERED]:
        yield _of_qrels(file)


def _studies(prefix: str = "") -> Q:
    """Studies whose candidates are documents: of alternatives, or judged for a collection."""
    return Q(**{f"{prefix}kind": Study.Kind.ALTERNATIVES}) | Q(
        **{f"{prefix}collections__isnull": False}
    )


def _label_sets(teams: list[Team]) -> Iterator[Source]:
    rows = LabelSet.objects.filter(_studies("study__"), study__team__in=teams).distinct()
    for one in rows.select_related("study", "question").order_by("-pk")[:MOST_OFFERED]:
        yield _of_label_set(one)


def _of_label_set(one: LabelSet) -> Source:
    return Source(
        key=f"labels:{one.pk}",
        title=_("label set {version}, {method}").format(version=one.version, method=one.method),
        group=one.study.title,
        team_id=one.study.team_id or 0,
        judgments=lambda: _judged(label_source(one)),
        study=one.study,
        label_set=one,
    )


def _rounds(teams: list[Team]) -> Iterator[Source]:
    studies = Study.objects.filter(_studies(), team__in=teams).distinct().in_bulk()
    rows = (
        Submission.objects.filter(item__study__in=list(studies))
        .order_by("-item__study", "round")
        .values_list("item__study", "round")
        .distinct()
    )
    for key, number in rows[:MOST_OFFERED]:
        yield _of_round(studies[key], number)


def _of_round(study: Study, number: int) -> Source:
    return Source(
        key=f"round:{study.pk}:{number}",
        title=_("round {number}, by majority").format(number=number),
        group=study.title,
        team_id=study.team_id or 0,
        judgments=lambda: _judged(judgment_source(study, round=number)),
        study=study,
    )


def _judged(source: QrelsSource) -> list[Judged]:
    return [(one.topic, one.docno, one.grade) for one in pairs_of(source) if one.grade is not None]


def _of_qrels(file: CollectionFile) -> Source:
    return Source(
        key=f"file:{file.pk}",
        title=file.name,
        group=file.collection.name,
        team_id=file.collection.team_id,
        judgments=lambda: _of_file(file),
        collection=file.collection.slug,
    )


def _of_file(file: CollectionFile) -> list[Judged]:
    with files_on_disk([file]) as [path]:
        grades = read_qrels(path)
        topics, documents = grades.topics, grades.documents
        rows = zip(grades.topic.tolist(), grades.document.tolist(), grades.grade, strict=True)
        return [(topics[row], documents[column], int(grade)) for row, column, grade in rows]


def find_study_source(study: Study, *, label_set: int | None, round: int) -> Source | None:
    """None also if the study judges no documents."""
    if not Study.objects.filter(_studies(), pk=study.pk).exists():
        return None
    if label_set is not None:
        row = LabelSet.objects.of(study).filter(version=label_set).first()
        return _of_label_set(row) if row else None
    rows = Submission.objects.filter(item__study=study.pk, round=round)
    return _of_round(study, round) if rows.exists() else None


def find_qrels_source(collection: Collection, name: str) -> Source | None:
    file = (
        collection.files.usable()
        .qrels()
        .filter(name=name)
        .select_related("collection")
        .defer("faults")
        .first()
    )
    return _of_qrels(file) if file else None


def list_embeddings(teams: list[Team]) -> list[tuple[int, str]]:
    rows = (
        CollectionFile.objects.usable()
        .embeddings()
        .filter(collection__team__in=teams)
        .select_related("collection")
        .defer("faults")
        .order_by("-pk")
    )
    text = _("embeddings {name} of {collection}")
    return [(one.pk, text.format(name=one.name, collection=one.collection)) for one in rows]


def read_embeddings(team: Team, key: int) -> tuple[str, list[str], Floats] | None:
    file = CollectionFile.objects.filter(collection__team=team, pk=key).first()
    if file is None:
        return None
    with files_on_disk([file]) as [path], vectors_of(path) as opened:
        return file.name, [str(one) for one in opened.names], opened.array[:]
