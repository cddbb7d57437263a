"""What may not be concluded of a collection: what its qrels, pool and results cannot say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from error_codes import CodedText
from results.models import Result
from retrieval.answers.studies import StudyJudgments
from retrieval.answers.targets import describe_unweighted, find_draw
from retrieval.models import CollectionFile, ResultFile, RunResult
from retrieval.report.basis import KIND, Basis

FEW_TOPICS = 20


def list_limits(basis: Basis) -> Iterator[str]:
    """What the collection, as it is, cannot say."""
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
    """Whether the judgments say more than chance would."""
    for study in [basis.study] if basis.study else basis.studies:
        if study.chance:
            yield CodedText(
                _("Whether labels of “{title}” are more than chance. {why}").format(
                    title=study.study.title, why=study.chance
                ),
                code="chance",
            )


def _of_sample(basis: Basis) -> Iterator[str]:
    """Whether means are of all targets."""
    if basis.evaluation is None or not basis.is_of_pool:
        return
    if why := describe_unweighted(basis.evaluation, find_draw(basis.pool)):
        yield CodedText(_("How runs do on all targets. {why}").format(why=why), code="unweighted")


def _of_assessors(basis: Basis) -> Iterator[str]:
    studies = [basis.study] if basis.study else basis.studies
    if not any(study.has_second_round or _has_several(study) for study in studies):
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
    """Whether topics and assessors can be told apart in the evaluated qrels."""
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
    if n := basis.pool.pool_summary.n_faults:
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
    pooled = set() if basis.pool is None else _runs_of(basis.pool)
    rows = ResultFile.objects.filter(version=basis.evaluation, kind=CollectionFile.Kind.RUN)
    judged = _wholly_judged(basis.evaluation)
    return [
        row.name
        for row in rows.order_by("name")
        if (row.name in names or (pooled and row.sha256 not in pooled)) and row.pk not in judged
    ]


def _wholly_judged(evaluation: Result) -> set[int]:
    """Runs whose documents are all judged where the primary measures look."""
    shares: dict[int, list[float | None]] = defaultdict(list)
    rows = RunResult.objects.filter(version=evaluation, measure__is_primary=True)
    for run, judged in rows.values_list("run", "judged"):
        shares[run].append(judged)
    return {
        run for run, of_run in shares.items() if all(one is not None and one >= 1 for one in of_run)
    }


def _runs_of(pool: Result) -> set[str]:
    """The runs whose candidates a pool has, by their content."""
    rows = pool.files.filter(kind=CollectionFile.Kind.RUN)
    return set(rows.values_list("sha256", flat=True))


def _has_several(study: StudyJudgments) -> bool:
    """Whether a round has several annotators of a target."""
    return any(round.n_submissions > round.n_items for round in study.rounds)
