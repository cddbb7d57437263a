"""A report that states what may be concluded of a collection: sentences from its stored results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from console.collections.comparison_view import ComparisonView
from console.collections.evaluation_view import EvaluationView
from console.collections.few_runs import few_runs_sentence
from console.collections.judgments_view import StudyJudgments, judged_studies
from console.collections.pool_view import PoolView
from console.collections.result_view import ResultView
from console.collections.reuse_view import ReuseView
from retrieval.evaluation_rows import StoredEvaluation
from retrieval.file_readings import subject_of
from retrieval.models import (
    Collection,
    CollectionFile,
    CollectionVersion,
    PoolStudy,
    ReportSentence,
    VersionFile,
)
from retrieval.stored_versions import create_version, once, write_rows
from work.request import request_job

if TYPE_CHECKING:
    from accounts.models import User
    from work.execution import RunningJob
    from work.models import Job

WRITE_REPORT = "write_collection_report"
FORM = 3
"""Of the sentences; those of another form are written anew."""
KIND = CollectionVersion.Kind
RESULTS = (KIND.POOL, KIND.EVALUATION, KIND.COMPARISON, KIND.REUSE)
FEW_TOPICS = 20
TITLES: dict[str, str | Promise] = {
    "answer": gettext_lazy("What may be concluded"),
    "judged": gettext_lazy("What was judged"),
    "pool": gettext_lazy("Where candidates come from"),
    "agreement": gettext_lazy("How far the assessors agree"),
    "systems": gettext_lazy("Which system is better"),
    "ranking": gettext_lazy("What of the ranking holds under another assessor"),
    "outside": gettext_lazy("What a system outside the pool may expect"),
    "limits": gettext_lazy("What may not be concluded"),
    "made": gettext_lazy("What it was made of"),
}


@dataclass
class Section:
    """A part of a report: its finding, and what stands behind it."""

    name: str
    sentences: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return str(TITLES[self.name])


class Conclusions:
    """What may be concluded of a collection as it stands."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection

    @cached_property
    def newest(self) -> dict[str, CollectionVersion]:
        """The newest result of each kind."""
        rows = CollectionVersion.objects.filter(
            collection=self.collection, kind__in=RESULTS
        ).order_by("number")
        return {row.kind: row for row in rows}

    @cached_property
    def studies(self) -> list[StudyJudgments]:
        return judged_studies(self.collection)

    @cached_property
    def qrels(self) -> list[CollectionFile]:
        return list(self.collection.files.qrels().usable().defer("faults").order_by("pk"))

    @cached_property
    def pool(self) -> CollectionVersion | None:
        """The pool that a study judges, or else the newest."""
        judged = PoolStudy.objects.filter(version__collection=self.collection)
        last = judged.select_related("version__pool_summary").order_by("pk").last()
        return last.version if last else self.newest.get(KIND.POOL)

    @cached_property
    def evaluation(self) -> EvaluationView | None:
        version = self.newest.get(KIND.EVALUATION)
        return EvaluationView(StoredEvaluation(version), {}) if version else None

    def _result(self, kind: str, view: type[ResultView]) -> ResultView | None:
        version = self.newest.get(kind)
        return view(version) if version else None

    @cached_property
    def comparison(self) -> ResultView | None:
        return self._result(KIND.COMPARISON, ComparisonView)

    @cached_property
    def reuse(self) -> ResultView | None:
        return self._result(KIND.REUSE, ReuseView)

    def sections(self) -> list[Section]:
        """The parts that have something to say."""
        parts = {
            "answer": self._answer,
            "judged": self._judged,
            "pool": self._pool,
            "agreement": self._agreement,
            "systems": self._systems,
            "ranking": lambda: _of(self.comparison),
            "outside": lambda: _of(self.reuse),
            "limits": self._limits,
            "made": self._made,
        }
        made = [Section(name, list(write())) for name, write in parts.items()]
        return [section for section in made if section.sentences]

    def _answer(self) -> Iterator[str]:
        if self.evaluation is None:
            yield _("Nothing may be concluded yet: no run was evaluated.")
            return
        yield self.evaluation.answer.said_first
        if few := few_runs_sentence(len(self.evaluation.rows.runs)):
            yield few
        for study in self.studies:
            yield from study.agreement[:1]
        for result in (self.comparison, self.reuse):
            if result is not None:
                yield result.said_first

    def _judged(self) -> Iterator[str]:
        for study in self.studies:
            yield f"“{study.study.title}”: {study.standing}"
            yield from (round.text for round in study.rounds)
        for file in self.qrels:
            text = ngettext(
                "Qrels “{name}”: {n} topic, {judged} documents judged, of which {relevant} are "
                "relevant; {unjudged} were pooled and not judged.",
                "Qrels “{name}”: {n} topics, {judged} documents judged, of which {relevant} are "
                "relevant; {unjudged} were pooled and not judged.",
                file.n_topics,
            )
            n_judged = (file.n_lines or 0) - file.n_unjudged
            yield text.format(
                name=file.name,
                n=f"{file.n_topics:,}",
                judged=f"{n_judged:,}",
                relevant=f"{file.n_relevant:,}",
                unjudged=f"{file.n_unjudged:,}",
            )

    def _pool(self) -> Iterator[str]:
        if self.pool is None:
            return
        view = PoolView(self.pool)
        yield f"{view.answer} {view.soundness}"
        text = _("{source}: {n} candidates, of which {alone} no other source lists.")
        for row in view.sources:
            name = _("Drawn at random") if row.kind == "uniform" else row.name
            yield text.format(source=name, n=f"{row.n_slots:,}", alone=f"{row.n_alone:,}")
        for study in PoolStudy.objects.filter(version=self.pool).exclude(allowed=""):
            yield _("It was judged although lint found: {faults}.").format(
                faults=study.allowed.replace(",", ", ")
            )

    def _agreement(self) -> Iterator[str]:
        for study in self.studies:
            yield from study.agreement

    def _systems(self) -> Iterator[str]:
        if self.evaluation is None:
            return
        view = self.evaluation
        yield view.answer.said_first
        yield from view.answer.details
        text = _("{run}: {measure} {mean} {interval}, on {n} topics.")
        for row in view.means:
            yield text.format(
                run=row.result.run.name,
                measure=view.measure.name,
                mean=row.value,
                interval=row.interval,
                n=f"{row.result.n_topics:,}",
            )
        yield from (str(note) for note in view.rows.notes)

    def _limits(self) -> Iterator[str]:
        """What the collection, as it is, cannot say."""
        if not any(study.has_second_round for study in self.studies):
            yield _("How far grades would change under another assessor: nothing was judged twice.")
        elif not any(study.kappas for study in self.studies):
            yield _("How far the rounds agree: their agreement was not computed.")
        if self.studies and all(_is_judged_once(study) for study in self.studies):
            yield _(
                "Whether a topic is hard or its assessor strict: most topics were judged by one "
                "assessor, and the two cannot be separated."
            )
        if self.comparison is None:
            yield _("Whether the ranking holds under other qrels: none were compared.")
        if self.reuse is None:
            yield _(
                "What a system outside the pool may expect: no system was left out of the pool."
            )
        if outside := self._outside():
            text = ngettext(
                "The place of {names} among the others: it was not pooled, so that nobody judged "
                "what it alone retrieves.",
                "The places of {names} among the others: they were not pooled, so that nobody "
                "judged what they alone retrieve.",
                len(outside),
            )
            yield text.format(names=", ".join(outside))
        if self.pool is not None and not self.pool.rules.get("uniform"):
            yield _(
                "How many relevant documents there are that no source found, and infAP: nothing "
                "was drawn at random from the rest of the catalogue."
            )
        if self.evaluation and self.evaluation.version.n_topics < FEW_TOPICS:
            yield _(
                "Much about other topics of this kind: below {n} topics intervals are a rough "
                "guide."
            ).format(n=FEW_TOPICS)

    def _outside(self) -> list[str]:
        """The evaluated runs that were not pooled, as was said or as the pool's own runs say."""
        if self.evaluation is None:
            return []
        reuse = self.newest.get(KIND.REUSE)
        said = set(reuse.rules.get("outside", ())) if reuse else set()
        pooled = set() if self.pool is None else _runs_of(self.pool)
        rows = VersionFile.objects.filter(
            version=self.evaluation.version, kind=CollectionFile.Kind.RUN
        )
        return [
            row.name
            for row in rows.order_by("name")
            if row.name in said or (pooled and row.sha256 not in pooled)
        ]

    def _made(self) -> Iterator[str]:
        text = _("{kind} {number} of {date}, fingerprint {fingerprint}.")
        for kind in RESULTS:
            if version := self.newest.get(kind):
                yield text.format(
                    kind=RESULT_TITLES[kind],
                    number=version.number,
                    date=f"{version.created_at:%Y-%m-%d}",
                    fingerprint=version.fingerprint[:16],
                )

    def fingerprint(self) -> str:
        """What the report depends on: the newest results, the qrels, and the judgments."""
        parts: list[Any] = [FORM]
        parts += [(kind, self.newest[kind].fingerprint) for kind in RESULTS if kind in self.newest]
        parts += [(file.name, file.sha256) for file in self.qrels]
        parts += [
            (one.study.pk, one.study.judgments_version, one.is_current) for one in self.studies
        ]
        return sha256(repr(parts).encode()).hexdigest()


RESULT_TITLES: dict[str, str | Promise] = {
    KIND.POOL: gettext_lazy("Pool"),
    KIND.EVALUATION: gettext_lazy("Evaluation"),
    KIND.COMPARISON: gettext_lazy("Comparison of qrels"),
    KIND.REUSE: gettext_lazy("Estimate of reuse"),
}


def _of(result: ResultView | None) -> list[str]:
    return [result.said_first, *result.details, *result.notes] if result else []


def _runs_of(pool: CollectionVersion) -> set[str]:
    """The runs whose candidates a pool has, by their content."""
    rows = pool.files.filter(kind=CollectionFile.Kind.RUN)
    return set(rows.values_list("sha256", flat=True))


def _is_judged_once(study: StudyJudgments) -> bool:
    first = study.rounds[0] if study.rounds else None
    return first is not None and first.n_submissions < 2 * first.n_items


def request_report(*, collection: Collection, actor: User | None) -> Job:
    """Have a report written of the collection as it stands."""
    return request_job(
        kind=WRITE_REPORT,
        subject=subject_of(collection),
        arguments={
            "collection": collection.pk,
            "fingerprint": Conclusions(collection).fingerprint(),
        },
        requested_by=actor,
    )


def write_report(running: RunningJob) -> str:
    """Write the report of a job; the same results make the same report once."""
    collection = Collection.objects.select_related("team").get(pk=running.arguments["collection"])
    conclusions = Conclusions(collection)
    fingerprint = conclusions.fingerprint()

    def compute() -> CollectionVersion:
        sections = conclusions.sections()
        with transaction.atomic():
            version = create_version(
                collection=collection,
                kind=KIND.REPORT,
                form=FORM,
                fingerprint=fingerprint,
                rules={},
                actor=running.job.requested_by,
            )
            rows = (
                {"version": version, "section": section.name, "text": text}
                for section in sections
                for text in section.sentences
            )
            write_rows(ReportSentence, rows)
        return version

    return once(collection, KIND.REPORT, fingerprint, compute)


def stored_sections(version: CollectionVersion) -> list[Section]:
    """The report of a version, part by part."""
    sections: dict[str, Section] = {}
    for row in ReportSentence.objects.filter(version=version):
        sections.setdefault(row.section, Section(row.section)).sentences.append(row.text)
    return list(sections.values())
