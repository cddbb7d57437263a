"""Which judgments an experiment may be made of: of studies, and of collections' qrels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Team
from accounts.roles import PERMISSIONS, SYSTEM_VIEWERS, Permission
from annotation.models import LabelSet, Study, Submission
from retrieval.collection_files import files_on_disk
from retrieval.exports.qrels import judgment_source, label_source, pairs_of
from retrieval.models import Collection, CollectionFile
from retrieval.trec_files import read_qrels
from simulation.stored_experiments import Judged

if TYPE_CHECKING:
    from accounts.models import User

MOST_OFFERED = 300
LABELS, ROUND, FILE = "labels", "round", "file"
MAJORITY = "majority"


def teams_that_may_simulate(user: User) -> list[Team]:
    """The teams in which a user may compute, and see which recommender did what."""
    roles = [role for role in SYSTEM_VIEWERS if Permission.ANALYSE in PERMISSIONS[role]]
    rows = Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles)
    return list(rows.order_by("name"))


@dataclass(frozen=True)
class Source:
    """Judgments by a key that a form sends back; they are read once they are chosen."""

    key: str
    title: str
    group: str
    team_id: int
    study: Study | None = None
    label_set: LabelSet | None = None
    round: int = 1
    file: CollectionFile | None = None

    @property
    def made_of(self) -> str:
        return f"{self.group}: {self.title}"

    @property
    def collection(self) -> str:
        return self.file.collection.slug if self.file else ""

    def judgments(self) -> list[Judged]:
        """Target, item and grade, in the order of judgment; below 0 where nobody judged."""
        if self.file is not None:
            return _of_file(self.file)
        if self.label_set is not None:
            source = label_source(self.label_set)
        else:
            assert self.study is not None
            source = judgment_source(self.study, rule=MAJORITY, round=self.round)
        pairs = pairs_of(source)
        return [(one.topic, one.docno, one.grade) for one in pairs if one.grade is not None]


def _of_file(file: CollectionFile) -> list[Judged]:
    with files_on_disk([file]) as [path]:
        grades = read_qrels(path)
        topics, documents = grades.topics, grades.documents
        rows = zip(grades.topic.tolist(), grades.document.tolist(), grades.grade, strict=True)
        return [(topics[row], documents[column], int(grade)) for row, column, grade in rows]


def sources_of(teams: list[Team]) -> dict[str, Source]:
    """What the teams' studies and collections offer, by key; the newest first."""
    rows = [*_label_sets(teams), *_rounds(teams), *_files(teams)]
    return {row.key: row for row in rows[:MOST_OFFERED]}


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
    title = _("label set {version}, {method}").format(version=one.version, method=one.method)
    return Source(
        key=f"{LABELS}:{one.pk}",
        title=title,
        group=one.study.title,
        team_id=one.study.team_id or 0,
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
        key=f"{ROUND}:{study.pk}:{number}",
        title=_("round {number}, by majority").format(number=number),
        group=study.title,
        team_id=study.team_id or 0,
        study=study,
        round=number,
    )


def _files(teams: list[Team]) -> Iterator[Source]:
    rows = CollectionFile.objects.usable().qrels().filter(collection__team__in=teams)
    for file in rows.select_related("collection").defer("faults").order_by("-pk")[:MOST_OFFERED]:
        yield _of_qrels(file)


def _of_qrels(file: CollectionFile) -> Source:
    return Source(
        key=f"{FILE}:{file.pk}",
        title=file.name,
        group=file.collection.name,
        team_id=file.collection.team_id,
        file=file,
    )


def source_of_study(study: Study, *, label_set: int | None, round: int) -> Source | None:
    """The labels of that version, or the judgments of a round; None where there are none, or where
    the study judges no documents."""
    if not Study.objects.filter(_studies(), pk=study.pk).exists():
        return None
    if label_set is not None:
        row = LabelSet.objects.of(study).filter(version=label_set).first()
        return _of_label_set(row) if row else None
    rows = Submission.objects.filter(item__study=study.pk, round=round)
    return _of_round(study, round) if rows.exists() else None


def source_of_qrels(collection: Collection, name: str) -> Source | None:
    """The usable qrels of that name; None where a collection has none."""
    rows = collection.files.usable().qrels().filter(name=name)
    file = rows.select_related("collection").defer("faults").first()
    return _of_qrels(file) if file else None


def first_key(sources: dict[str, Source], *, study: str, collection: str) -> str:
    """The judgments that a link meant: the newest of that study or collection."""
    for key, source in sources.items():
        if study and source.study is not None and source.study.slug == study:
            return key
        if collection and source.collection == collection:
            return key
    return next(iter(sources), "")
