from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from error_codes import CodedText
from presentation.numbers import group_values, join_names
from results.models import Result
from retrieval.answers.pools import describe_unweighted, find_draw
from retrieval.answers.studies import RoundOfStudy, StudyJudgments, judged_studies
from retrieval.models import (
    Collection,
    CollectionFile,
    PoolStudy,
    ResultFile,
    ResultType,
    RunResult,
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
        by_kind: dict[str, list[Result]] = {kind: [] for kind in RESULTS}
        rows = Result.objects.filter(collection=self.collection, kind__in=RESULTS)
        for row in rows.order_by("-number"):
            by_kind[row.kind].append(row)
        return by_kind

    @cached_property
    def grades(self) -> dict[int, list[ResultFile]]:
        rows = ResultFile.objects.filter(version__collection=self.collection, kind__in=GRADES)
        return group_values((row.version_id, row) for row in rows.order_by("pk"))

    @cached_property
    def evaluation(self) -> Result | None:
        return next(iter(self.versions[KIND.EVALUATION]), None)

    @cached_property
    def evaluated(self) -> ResultFile | None:
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
        key = self.evaluated_file.study_id if self.evaluated_file else None
        return next((one for one in self.studies if one.study.pk == key), None)

    @cached_property
    def round(self) -> RoundOfStudy | None:
        if self.study is None or self.evaluated_file is None:
            return None
        number = self.evaluated_file.round
        return next((one for one in self.study.rounds if str(one.round) == number), None)

    @cached_property
    def pool_study(self) -> PoolStudy | None:
        """The study of a pool whose judgments were evaluated; without an evaluation, or where
        nothing says which those were, the last one."""
        rows = PoolStudy.objects.filter(version__collection=self.collection)
        rows = rows.select_related("version", "study").order_by("pk")
        return (rows.filter(study=self.study.study) if self.study else rows).last()

    @cached_property
    def pool(self) -> Result | None:
        if self.pool_study is not None:
            return self.pool_study.version
        return next(iter(self.versions[KIND.POOL]), None)

    @property
    def is_of_pool(self) -> bool:
        return self.study is not None and self.pool_study is not None

    def result(self, kind: str) -> Result | None:
        versions = self.versions[kind]
        return next((one for one in versions if self.is_of_same(one)), next(iter(versions), None))

    def is_of_same(self, version: Result) -> bool:
        files = self.grades.get(version.pk, [])
        return self.evaluated is not None and self.evaluated.sha256 in {
            file.sha256 for file in files
        }

    def used(self) -> list[Result]:
        results = [self.pool, self.evaluation]
        results += [self.result(kind) for kind in RESULTS[2:]]
        return [version for version in results if version is not None]

    def name_of(self, version: Result) -> str:
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
    names = join_names([_("“{name}”").format(name=one) for one in studies])
    text = _("{title}, of the study {names}") if names else _("{title}, which no study judges")
    return text.format(title=title, names=names)


FEW_TOPICS = 20


def list_limits(basis: Basis) -> Iterator[str]:
    yield from _of_chance(basis)
    yield from _of_sample(basis)
    yield from _of_assessors(basis)
    yield from _of_results(basis)
    yield from _of_pool(basis)
    if basis.evaluation and basis.evaluation.facts["n_topics"] < FEW_TOPICS:
        yield CodedText(
            _(
                "Much about other topics of this kind: below {n} topics intervals are a rough "
                "guide."
            ).format(n=FEW_TOPICS),
            code="few_topics",
        )


def _of_chance(basis: Basis) -> Iterator[str]:
    for study in [basis.study] if basis.study else basis.studies:
        if study.chance:
            yield CodedText(
                _("Whether labels of “{title}” are more than chance. {why}").format(
                    title=study.study.title, why=study.chance
                ),
                code="chance",
            )


def _of_sample(basis: Basis) -> Iterator[str]:
    if basis.evaluation is None or not basis.is_of_pool:
        return
    if why := describe_unweighted(basis.evaluation, find_draw(basis.pool)):
        yield CodedText(_("How runs do on all targets. {why}").format(why=why), code="unweighted")


def _of_assessors(basis: Basis) -> Iterator[str]:
    studies = [basis.study] if basis.study else basis.studies
    if not any(study.has_two_opinions for study in studies):
        yield CodedText(
            _("How far grades would change under another assessor: nothing was judged twice."),
            code="judged_once",
        )
    elif any(study.has_second_round for study in studies) and not any(
        study.kappas for study in studies
    ):
        yield CodedText(
            _("How far the rounds agree: their agreement was not computed."),
            code="agreement_missing",
        )
    file = basis.evaluated_file
    if file is not None and file.made_by == CollectionFile.MadeBy.MACHINE:
        yield CodedText(
            _("What people would say: the evaluated qrels “{name}” are a machine's.").format(
                name=file.name
            ),
            code="machine_judged",
        )
    elif file is not None and file.made_by == CollectionFile.MadeBy.SIMULATED:
        yield CodedText(
            _(
                "What people would say: simulated workers judged the evaluated qrels “{name}”."
            ).format(name=file.name),
            code="simulated_judged",
        )
    elif basis.evaluated is not None:
        yield from _of_one_assessor(basis, basis.evaluated)


def _of_one_assessor(basis: Basis, evaluated: ResultFile) -> Iterator[str]:
    file, round = basis.evaluated_file, basis.round
    if (round is not None and round.n_submissions < 2 * round.n_items) or (
        file is not None and file.assessor and not file.rule
    ):
        yield CodedText(
            _(
                "Whether a topic is hard or its assessor strict: most topics of “{name}” were "
                "judged by one assessor, and the two cannot be separated."
            ).format(name=evaluated.name),
            code="one_assessor",
        )
    elif round is None:
        yield CodedText(
            _(
                "Whether a topic is hard or its assessor strict: nothing says how many assessors "
                "judged each topic of “{name}”."
            ).format(name=evaluated.name),
            code="assessors_unknown",
        )


def _of_results(basis: Basis) -> Iterator[str]:
    comparison, reuse = basis.result(KIND.COMPARISON), basis.result(KIND.REUSE)
    if comparison is None:
        yield CodedText(
            _("Whether the ranking holds under other qrels: none were compared."),
            code="not_compared",
        )
    elif _is_of_others(basis, comparison):
        yield CodedText(
            _(
                "Whether the ranking holds under other qrels: those that were evaluated, “{name}”, "
                "were compared with none."
            ).format(name=basis.evaluated),
            code="compared_otherwise",
        )
    if reuse is None:
        yield CodedText(
            _("What a system outside the pool may expect: no system was left out of the pool."),
            code="not_left_out",
        )
    elif _is_of_others(basis, reuse):
        yield CodedText(
            _(
                "What a system outside the pool may expect under “{name}”: systems were left out "
                "of other qrels alone."
            ).format(name=basis.evaluated),
            code="left_out_otherwise",
        )


def _is_of_others(basis: Basis, version: Result) -> bool:
    return basis.evaluated is not None and not basis.is_of_same(version)


def _of_pool(basis: Basis) -> Iterator[str]:
    if outside := _outside(basis):
        text = ngettext(
            "The place of {names} among the others: it was not pooled, so that nobody judged "
            "what it alone retrieves.",
            "The places of {names} among the others: they were not pooled, so that nobody "
            "judged what they alone retrieve.",
            len(outside),
        )
        yield CodedText(text.format(names=", ".join(outside)), code="not_pooled")
    if basis.pool is None:
        return
    if not basis.pool.settings.get("uniform"):
        yield CodedText(
            _(
                "How many relevant documents there are that no source found, and infAP: nothing "
                "was drawn at random from the rest of the catalogue."
            ),
            code="nothing_uniform",
        )
    if n := basis.pool.facts["n_faults"]:
        text = ngettext(
            "What the pool would have shown without its fault: {n} was found.",
            "What the pool would have shown without its faults: {n} were found.",
            n,
        )
        yield CodedText(text.format(n=f"{n:,}"), code="pool_faults")


def _outside(basis: Basis) -> list[str]:
    """The evaluated runs that were not pooled, as was said or as the pool's own runs say, and of
    which not all is judged that the primary measures look at."""
    if basis.evaluation is None:
        return []
    reuse = basis.result(KIND.REUSE)
    names = set(reuse.settings.get("outside", ())) if reuse else set()
    runs = ResultFile.objects.filter(version=basis.pool, kind=FILE.RUN)
    pooled = set(runs.values_list("sha256", flat=True)) if basis.pool else set()
    rows = ResultFile.objects.filter(version=basis.evaluation, kind=CollectionFile.Kind.RUN)
    judged = _wholly_judged(basis.evaluation)
    return [
        row.name
        for row in rows.order_by("name")
        if (row.name in names or (pooled and row.sha256 not in pooled)) and row.pk not in judged
    ]


def _wholly_judged(evaluation: Result) -> set[int]:
    shares = group_values(
        RunResult.objects.filter(version=evaluation, measure__is_primary=True).values_list(
            "run", "judged"
        )
    )
    return {
        run for run, of_run in shares.items() if all(one is not None and one >= 1 for one in of_run)
    }
