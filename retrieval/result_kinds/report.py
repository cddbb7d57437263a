from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.models import User
from error_codes import CodedText
from presentation.numbers import join_names
from results.computing import digest_inputs, request_result
from results.kinds import Computed, Given, Record, Row, Table, Text, register_kind
from results.models import Result
from results.shown import ShownResult
from retrieval.answers.audit import list_files
from retrieval.answers.evaluation import EvaluationView
from retrieval.answers.pools import PoolView, find_draw
from retrieval.answers.studies import StudyJudgments
from retrieval.evaluated_runs import few_runs_sentence
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.report_basis import KIND, RESULT_TITLES, RESULTS, Basis, list_limits
from retrieval.result_kinds.base import CollectionKind
from retrieval.result_kinds.evaluation import StoredEvaluation
from work.models import Job

MOST_FILES = 20
TITLES: dict[str, str | Promise] = {
    "answer": gettext_lazy("What may be concluded"),
    "judged": gettext_lazy("What was judged"),
    "pool": gettext_lazy("Where candidates come from"),
    "agreement": gettext_lazy("How far the assessors agree"),
    "systems": gettext_lazy("Which system is better"),
    "ranking": gettext_lazy("What of the ranking holds under another assessor"),
    "machine": gettext_lazy("What a machine's labels are worth"),
    "outside": gettext_lazy("What a system outside the pool may expect"),
    "audit": gettext_lazy("What an audit of files found"),
    "limits": gettext_lazy("What may not be concluded"),
    "made": gettext_lazy("What it was made of"),
}
# Their sentences are of several studies, files or results, of which none comes first.
LISTS = ("judged", "agreement", "limits", "made")
SHOWN = (KIND.COMPARISON, KIND.MACHINE, KIND.REUSE, KIND.AUDIT)


@dataclass
class Section:
    name: str
    sentences: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        return str(TITLES[self.name])

    @property
    def is_list(self) -> bool:
        return self.name in LISTS


class Conclusions:
    def __init__(self, collection: Collection) -> None:
        self.basis = Basis(collection)

    @cached_property
    def evaluation(self) -> EvaluationView | None:
        version = self.basis.evaluation
        return EvaluationView(StoredEvaluation(version), {}) if version else None

    @cached_property
    def results(self) -> dict[str, ShownResult]:
        results = {kind: self.basis.result(kind) for kind in SHOWN}
        return {kind: ShownResult(one) for kind, one in results.items() if one is not None}

    def sections(self) -> list[Section]:
        parts = {
            "answer": self._answer,
            "judged": self._judged,
            "pool": self._pool,
            "agreement": lambda: self._agreement(self.basis.studies),
            "systems": self._systems,
            "ranking": lambda: self._of(KIND.COMPARISON),
            "machine": lambda: self._of(KIND.MACHINE),
            "outside": lambda: self._of(KIND.REUSE),
            "audit": self._audit,
            "limits": lambda: list_limits(self.basis),
            "made": self._sources,
        }
        sections = [Section(name, list(write())) for name, write in parts.items()]
        return [section for section in sections if section.sentences]

    def _answer(self) -> Iterator[str]:
        if self.evaluation is None:
            yield CodedText(
                _("Nothing may be concluded yet: no run was evaluated."), code="nothing_evaluated"
            )
            return
        basis = self.basis
        yield _sentence_of(
            basis.name_of(self.evaluation.version), self.evaluation.answer.first_sentence
        )
        if few := few_runs_sentence(len(self.evaluation.rows.runs)):
            yield few
        for study in [basis.study] if basis.study else basis.studies:
            yield from self._agreement([study], most=1)
            if study.chance:
                yield _sentence_of(_study_name(study), study.chance)
        for result in self.results.values():
            yield _sentence_of(basis.name_of(result.result), result.answer)

    def _judged(self) -> Iterator[str]:
        for study in self.basis.studies:
            name = _study_name(study)
            yield _sentence_of(name, study.standing)
            yield from (_sentence_of(name, round.text) for round in study.rounds)
        yield from map(_qrels_sentence, self.basis.qrels)

    def _pool(self) -> Iterator[str]:
        basis, pool = self.basis, self.basis.pool
        if pool is None:
            return
        view = PoolView(pool)
        yield _sentence_of(basis.name_of(pool), f"{view.answer} {view.soundness}")
        if draw := find_draw(pool):
            yield draw.sentence
        if basis.evaluated is not None and not basis.is_of_pool:
            yield CodedText(
                _(
                    "Nothing says that the evaluated qrels “{name}” are judgments of this pool."
                ).format(name=basis.evaluated.name),
                code="qrels_not_of_pool",
            )
        text = _("{source}: {n} candidates, of which {alone} no other source lists.")
        for row in pool.record["sources"]:
            name = _("Drawn at random") if row["kind"] == "uniform" else row["name"]
            yield text.format(source=name, n=f"{row['n_slots']:,}", alone=f"{row['n_alone']:,}")
        for fault in view.faults:
            yield CodedText(
                _("Fault: {title} ({n}).").format(title=fault.title, n=f"{fault.n:,}"),
                code="pool_fault",
            )
        allowed = basis.pool_study.allowed.split(",") if basis.pool_study else []
        if names := [fault.name for fault in view.faults if fault.name in allowed]:
            yield CodedText(
                _("Its study was made although lint found: {faults}.").format(
                    faults=", ".join(names)
                ),
                code="allowed_faults",
            )

    def _agreement(
        self, studies: Iterable[StudyJudgments], most: int | None = None
    ) -> Iterator[str]:
        for study in studies:
            yield from (_sentence_of(_study_name(study), text) for text in study.agreement[:most])

    def _systems(self) -> Iterator[str]:
        if self.evaluation is None:
            return
        view = self.evaluation
        yield _sentence_of(self.basis.name_of(view.version), view.answer.first_sentence)
        yield from view.answer.details
        if view.unweighted:
            yield view.unweighted
        text = _("{run}: {measure} {mean} {interval}, on {n} topics.")
        for row in view.means:
            yield text.format(
                run=row["result"].run.name,
                measure=view.measure.name,
                mean=row["value"],
                interval=row["interval"],
                n=f"{row['result'].n_topics:,}",
            )
        yield from (str(note) for note in view.rows.notes)

    def _of(self, kind: str) -> Iterator[str]:
        if (result := self.results.get(kind)) is None:
            return
        yield _sentence_of(self.basis.name_of(result.result), result.answer)
        yield from (*result.details, *result.notes)

    def _audit(self) -> Iterator[str]:
        yield from self._of(KIND.AUDIT)
        if (shown := self.results.get(KIND.AUDIT)) is not None:
            faulty = [one for one in list_files(shown.result) if one.refused or one.defects]
            for one in faulty[:MOST_FILES]:
                yield _sentence_of(_quoted(one.file["file"]), f"{one.finding}.")
            if (rest := len(faulty) - MOST_FILES) > 0:
                yield ngettext(
                    "{n} more file has defects.", "{n} more files have defects.", rest
                ).format(n=rest)

    def _sources(self) -> Iterator[str]:
        text = _("{name}; of {date}, fingerprint {fingerprint}.")
        for version in self.basis.used():
            yield text.format(
                name=self.basis.name_of(version),
                date=f"{version.created_at:%Y-%m-%d}",
                fingerprint=version.fingerprint[:16],
            )
        keys = {version.pk for version in self.basis.used()}
        versions = self.basis.versions
        others = {kind: [one for one in versions[kind] if one.pk not in keys] for kind in RESULTS}
        for kind, rest in others.items():
            if rest:
                numbers = join_names([str(one.number) for one in reversed(rest)])
                yield CodedText(
                    _("Not in this report: {kind} {numbers}.").format(
                        kind=RESULT_TITLES[kind], numbers=numbers
                    ),
                    code="left_out",
                )


def _qrels_sentence(file: CollectionFile) -> str:
    n_judged = (file.n_lines or 0) - file.n_unjudged
    text = ngettext(
        "{n} topic, {judged} topic–document pairs judged, of which {relevant} are relevant.",
        "{n} topics, {judged} topic–document pairs judged, of which {relevant} are relevant.",
        file.n_topics,
    ).format(n=f"{file.n_topics:,}", judged=f"{n_judged:,}", relevant=f"{file.n_relevant:,}")
    if file.n_unjudged:
        unjudged = ngettext(
            "{n} was pooled and not judged.", "{n} were pooled and not judged.", file.n_unjudged
        )
        text = f"{text} {unjudged.format(n=f'{file.n_unjudged:,}')}"
    whose = [_("Qrels “{name}”").format(name=file.name)]
    if file.made_by == CollectionFile.MadeBy.MACHINE:
        whose.append(_("a machine's"))
    if file.made_by == CollectionFile.MadeBy.SIMULATED:
        whose.append(_("by simulated workers"))
    if file.judgments:
        whose.append(_("of {judgments}").format(judgments=file.judgments))
    return _sentence_of(", ".join(whose), text)


def _study_name(study: StudyJudgments) -> str:
    return _("Study “{title}”").format(title=study.study.title)


def _quoted(name: str) -> str:
    return _("“{name}”").format(name=name)


def _sentence_of(of: str, text: str) -> str:
    return CodedText(_("{of}: {text}").format(of=of, text=text), code=getattr(text, "code", ""))


WRITE_REPORT = "write_collection_report"


def request_report(*, collection: Collection, actor: User | None) -> Job:
    kind = ReportKind()
    basis = digest_inputs(kind, collection, [], {})
    return request_result(
        kind=kind, subject=collection, chosen={}, settings={"basis": basis[:12]}, actor=actor
    )


def read_sections(result: Result) -> list[Section]:
    return [Section(one["name"], one["sentences"]) for one in result.record["sections"]]


def _list_sentences(record: Record) -> list[Row]:
    return [
        {"section": one["name"], "title": Section(one["name"]).title, "text": text}
        for one in record["sections"]
        for text in one["sentences"]
    ]


@register_kind
class ReportKind(CollectionKind):
    name = ResultType.REPORT.value
    title = gettext_lazy("Report")
    job = WRITE_REPORT
    job_label = gettext_lazy("Writing the report")
    form = 5
    tables = {
        "sentences": Table(
            gettext_lazy("Report"),
            {
                "section": Text(gettext_lazy("Name")),
                "title": Text(gettext_lazy("Section")),
                "text": Text(gettext_lazy("Text")),
            },
            rows=_list_sentences,
        )
    }

    def describe_inputs(self, subject: Collection, inputs: Sequence[Any]) -> list[Any]:
        return Basis(subject).parts()

    def compute(self, given: Given[Collection]) -> Computed:
        sections = Conclusions(given.subject).sections()
        record = {"sections": [{"name": one.name, "sentences": one.sentences} for one in sections]}
        return Computed(record=record)

    def answer(self, result: Result) -> str:
        return next((text for one in read_sections(result) for text in one.sentences), "")

    def details(self, result: Result) -> list[str]:
        first = next(iter(read_sections(result)), None)
        return first.sentences[1:] if first else []
