"""What a collection's report rests on: one evaluation, and the results that belong to it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from presentation.phrases import join_names
from results.models import Result
from retrieval.answers.studies import RoundOfStudy, StudyJudgments, judged_studies
from retrieval.models import (
    Collection,
    CollectionFile,
    PoolStudy,
    ResultFile,
    ResultType,
)

KIND, FILE = ResultType, CollectionFile.Kind
RESULTS = (KIND.POOL, KIND.EVALUATION, KIND.COMPARISON, KIND.REUSE, KIND.MACHINE, KIND.AUDIT)
GRADES = (FILE.QRELS, FILE.ASSESSORS)
RESULT_TITLES: dict[str, str | Promise] = {
    KIND.POOL: gettext_lazy("Pool"),
    KIND.EVALUATION: gettext_lazy("Evaluation"),
    KIND.COMPARISON: gettext_lazy("Comparison of qrels"),
    KIND.REUSE: gettext_lazy("Estimate of reuse"),
    KIND.MACHINE: gettext_lazy("Machine's labels"),
    KIND.AUDIT: gettext_lazy("Audit"),
}


class Basis:
    """The newest evaluation, its qrels, the study and pool that these come from, and of every
    other kind the newest result of the same qrels; where there is none, the newest of all."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    @cached_property
    def versions(self) -> dict[str, list[Result]]:
        """Every result by its kind, the newest first."""
        by_kind: dict[str, list[Result]] = {kind: [] for kind in RESULTS}
        rows = Result.objects.filter(collection=self.collection, kind__in=RESULTS)
        for row in rows.order_by("-number"):
            by_kind[row.kind].append(row)
        return by_kind

    @cached_property
    def grades(self) -> dict[int, list[ResultFile]]:
        """The files of grades of each result, by its key."""
        rows = ResultFile.objects.filter(version__collection=self.collection, kind__in=GRADES)
        by_version: dict[int, list[ResultFile]] = {}
        for row in rows.order_by("pk"):
            by_version.setdefault(row.version_id, []).append(row)
        return by_version

    @cached_property
    def evaluation(self) -> Result | None:
        return next(iter(self.versions[KIND.EVALUATION]), None)

    @cached_property
    def evaluated(self) -> ResultFile | None:
        """The qrels that the runs were evaluated under."""
        return self.grades[self.evaluation.pk][0] if self.evaluation else None

    @cached_property
    def qrels(self) -> list[CollectionFile]:
        return list(self.collection.files.qrels().usable().defer("faults").order_by("pk"))

    @cached_property
    def evaluated_file(self) -> CollectionFile | None:
        """What is stored of those qrels: whose judgments they are; None where they have gone."""
        if self.evaluated is None:
            return None
        same = [file for file in self.qrels if file.sha256 == self.evaluated.sha256]
        return next((file for file in same if file.pk == self.evaluated.file_id), None) or next(
            iter(same), None
        )

    @cached_property
    def studies(self) -> list[StudyJudgments]:
        return judged_studies(self.collection)

    @cached_property
    def study(self) -> StudyJudgments | None:
        """The study that the evaluated qrels were made of."""
        key = self.evaluated_file.study_id if self.evaluated_file else None
        return next((one for one in self.studies if one.study.pk == key), None)

    @cached_property
    def round(self) -> RoundOfStudy | None:
        """The round of that study that the evaluated qrels were made of."""
        if self.study is None or self.evaluated_file is None:
            return None
        number = self.evaluated_file.round
        return next((one for one in self.study.rounds if str(one.round) == number), None)

    @cached_property
    def pool_study(self) -> PoolStudy | None:
        """The study of a pool whose judgments were evaluated; without an evaluation, or where
        nothing says which those were, the last one."""
        rows = PoolStudy.objects.filter(version__collection=self.collection)
        rows = rows.select_related("version__pool_summary", "study").order_by("pk")
        if self.study is not None:
            return rows.filter(study=self.study.study).last()
        return rows.last()

    @cached_property
    def pool(self) -> Result | None:
        """The pool of that study, or else the newest."""
        if self.pool_study is not None:
            return self.pool_study.version
        return next(iter(self.versions[KIND.POOL]), None)

    @property
    def is_of_pool(self) -> bool:
        """Whether the evaluated qrels are known to be judgments of that pool."""
        return self.study is not None and self.pool_study is not None

    def result(self, kind: str) -> Result | None:
        """The newest of a kind of the evaluated qrels, or else the newest."""
        versions = self.versions[kind]
        return next((one for one in versions if self.is_of_same(one)), next(iter(versions), None))

    def is_of_same(self, version: Result) -> bool:
        """Whether a result rests on the evaluated qrels."""
        files = self.grades.get(version.pk, [])
        return self.evaluated is not None and self.evaluated.sha256 in {
            file.sha256 for file in files
        }

    def used(self) -> list[Result]:
        """All results that the report speaks of."""
        results = [self.pool, self.evaluation]
        results += [self.result(kind) for kind in RESULTS[2:]]
        return [version for version in results if version is not None]

    def name_of(self, version: Result) -> str:
        """A result by its number, and what it rests on."""
        title = _("{kind} {number}").format(kind=RESULT_TITLES[version.kind], number=version.number)
        if version.kind == KIND.POOL:
            studies = PoolStudy.objects.filter(version=version).order_by("study__title")
            return _judged_in(title, studies.values_list("study__title", flat=True))
        if version.kind == KIND.AUDIT:
            n = version.facts["n_files"]
            return ngettext("{title}, of {n} file", "{title}, of {n} files", n).format(
                title=title, n=n
            )
        files = [one.name for one in self.grades.get(version.pk, [])]
        if version.kind == KIND.MACHINE:
            # which of the two is the machine's, the settings say
            machine = version.settings.get("machine", "")
            title = _("{title}, of “{machine}”").format(title=title, machine=machine)
            files = [name for name in files if name != machine]
        names = join_names([_("“{name}”").format(name=name) for name in files])
        if self.evaluated is None or self.is_of_same(version):
            return _("{title}, by qrels {names}").format(title=title, names=names)
        return _("{title}, by qrels {names}, not by those that were evaluated").format(
            title=title, names=names
        )

    def parts(self) -> list[Any]:
        """What the report depends on."""
        parts: list[Any] = [(one.kind, one.number, one.fingerprint) for one in self.used()]
        parts += [(kind, len(versions)) for kind, versions in self.versions.items()]
        parts += [
            (file.name, file.sha256, file.made_by, file.assessor, file.round, file.study_id)
            for file in self.qrels
        ]
        parts += [
            (one.study.pk, one.study.title, one.study.judgments_version, one.is_current)
            for one in self.studies
        ]
        return parts


def _judged_in(title: str, studies: Iterable[str]) -> str:
    """A pool by the studies that judge it."""
    names = join_names([_("“{name}”").format(name=one) for one in studies])
    text = _("{title}, of the study {names}") if names else _("{title}, which no study judges")
    return text.format(title=title, names=names)
