from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.utils.translation import gettext, gettext_lazy as _

from annotation.bulk import batched
from annotation.exceptions import AnnotationError
from presentation.files import reason_of
from results.kinds import ResultKind
from results.models import Result
from results.settings import Choice, Choices, Flag, Inputs, Names, Number, setting
from retrieval.evaluated_runs import Settings
from retrieval.exceptions import CollectionUnfit, RetrievalError, RunsUnfit
from retrieval.models import Collection, CollectionFile, ResultFile, ResultType
from retrieval.rankings import ComparisonSettings as Defaults
from stats.ranking import Measure, measure

ROWS_AT_ONCE = 2000
Kind = CollectionFile.Kind

COMMON = (
    *("nDCG@10", "RR@10", "Success@1", "P@5", "P@10", "R@100", "AP", "Bpref", "RBP", "Judged@10"),
)
CONFIDENCE = 0.95
# As many as are offered, the newest first.
SAMPLES = 20
MOST_DRAWS = 20_000
MOST_SEED = 2**31 - 1
MEASURES = Names(
    label=_("Measures"),
    help=_(
        "With commas between: nDCG(dcg='exp-log2')@10, P(rel=2)@5, infAP, RBP(p=0.9), "
        "nDCG(judged_only=True)@10; trec_eval's names too."
    ),
    common=COMMON,
    others_label=_("Other measures"),
)
TEST = Choice(
    label=_("Test"),
    choices=[
        (None, _("randomisation; McNemar's for Success")),
        ("randomisation", _("randomisation")),
        ("t", _("paired t")),
        ("mcnemar", _("McNemar's exact test, for Success alone")),
    ],
    is_advanced=True,
)
RUNS = Inputs(label=_("Runs"), several=True, begins_with_all=True)
QRELS = Inputs(label=_("Qrels"))


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    measures: Sequence[str] = setting(["nDCG@10"], MEASURES)
    primary: Sequence[str] = setting(
        [],
        Names(
            label=_("Primary measures"),
            begins_with=("nDCG@10",),
            help=_(
                "Their tests are corrected together, and the answer is of the first. Empty: all."
            ),
        ),
    )
    missing: str = setting(
        "common",
        Choice(
            label=_("Topics that a run lacks"),
            choices=[
                ("common", _("compare on topics that both have")),
                ("zero", _("count 0 for whoever lacks them")),
            ],
        ),
    )
    ties: str = setting(
        "falling",
        Choice(
            label=_("Documents of the same score"),
            choices=[
                ("falling", _("by name, last name first, as trec_eval")),
                ("rising", _("by name, first name first")),
            ],
            is_advanced=True,
        ),
    )
    leave_out_without_relevant: bool = setting(
        False,
        Flag(
            label=_("Leave topics out that have no relevant document, for all runs"),
            is_advanced=True,
        ),
    )
    single_precision: bool = setting(
        True,
        Flag(
            label=_("Compare scores as 64-bit floats, as trec_eval 10 does"),
            asked_as="double",
            is_advanced=True,
        ),
    )
    confidence: float = setting(
        CONFIDENCE,
        Number(
            label=_("Confidence of the intervals"),
            help=_("Between 0.5 and 0.999. Significance stays at .05."),
            least=0.5,
            most=0.999,
            is_fraction=True,
            is_advanced=True,
        ),
    )
    seed: int = setting(
        0, Number(label=_("Seed of random draws"), least=0, most=MOST_SEED, is_advanced=True)
    )


def offer_samples(collection: Collection) -> Choices:
    samples = Result.objects.of(collection, ResultType.TARGETS)[:SAMPLES]
    return [(one.pk, title_sample(one)) for one in samples]


def title_sample(sample: Result) -> str:
    return str(_("all targets that sample {number} was drawn from ({n} drawn)")).format(
        number=sample.number, n=format(sample.facts["n_topics"], ",")
    )


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(RunSettings):
    measures: Sequence[str] = setting(["nDCG@10", "RR@10", "Judged@10"], MEASURES)
    weights: int | None = setting(
        None,
        Choice(
            label=_("Topics stand for"),
            help=_(
                "Of a sample that drew targets with unequal probabilities: means and differences "
                "for all its targets too, each topic weighed by 1 / probability. Tests and groups "
                "are of the topics as they are."
            ),
            choices=[("", _("themselves alone"))],
            offer=offer_samples,
        ),
    )
    test: str | None = setting(None, TEST)


@dataclass(frozen=True, kw_only=True)
class ReuseSettings(RunSettings):
    pool_depth: int | None = setting(
        None,
        Number(
            label=_("Depth of the pool"),
            help=_(
                "How many of each run's first documents were pooled, such as 10. Empty: as deep as "
                "the pool of the qrels' study was made here, or else as many as are in the qrels "
                "of every pooled run; where runs begin with what is never pooled, such as their "
                "own target, type it, and count that document."
            ),
            least=1,
            most=1_000_000,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class MachineSettings(RunSettings):
    sample: str | None = setting(
        None,
        Choice(
            label=_("What was drawn for people"),
            choices=[
                (None, _("find out from the files")),
                ("topics", _("whole topics")),
                ("labels", _("single documents")),
            ],
        ),
    )


def offer_truths(collection: Collection) -> Choices:
    rows = collection.files.usable().qrels().order_by("name")
    return [(name, name) for name in rows.values_list("name", flat=True)]


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings(RunSettings):
    test: str | None = setting(None, TEST)
    truth: str | None = setting(
        None,
        Choice(
            label=_("Held against"),
            help=_("Where one of them is taken for the truth; else all are alike."),
            choices=[("", _("none of them"))],
            offer=offer_truths,
        ),
    )
    top: int | None = setting(
        None,
        Number(
            label=_("The best runs by themselves"),
            help=_("How many: agreement over all may hide that the best change."),
            least=2,
            most=10_000,
        ),
    )
    rbo_p: float = setting(
        Defaults.rbo_p,
        Number(
            label=_("p of rank-biased overlap (RBO)"),
            help=_(
                "How likely a reader goes on to the next rank. At 0.9 the first ten ranks have "
                "86 % of the weight; with few runs a smaller p leaves less to ranks that there "
                "are not."
            ),
            least=0.01,
            most=0.999,
            is_fraction=True,
            is_advanced=True,
        ),
    )
    rbo_ties: str = setting(
        Defaults.rbo_ties,
        Choice(
            label=_("Tied runs in RBO"),
            choices=[
                ("b", _("b: order unknown, corrected as in tau-b")),
                ("a", _("a: order unknown, the mean over all orders")),
                ("w", _("w: they truly share a rank")),
            ],
            is_advanced=True,
        ),
    )
    n_resamples: int = setting(
        Defaults.n_resamples,
        Number(
            label=_("Resamples of the topics, for intervals"),
            least=100,
            most=MOST_DRAWS,
            is_advanced=True,
        ),
    )
    n_draws: int = setting(
        Defaults.n_draws,
        Number(
            label=_("Draws of one assessor a topic"), least=100, most=MOST_DRAWS, is_advanced=True
        ),
    )


def settings_of(rules: Mapping[str, Any]) -> Settings:
    """Settings by their plain values; RunsUnfit where they cannot be used together."""
    try:
        measures = _measures(rules["measures"])
        primary = _measures(rules.get("primary", ()))
    except ValueError as error:
        raise RunsUnfit(f"{reason_of(error)}.", code="unknown_measure") from None
    if not measures:
        raise RunsUnfit(_("Choose at least one measure."), code="no_measure")
    if unknown := [one.name for one in primary if one not in measures]:
        raise RunsUnfit(
            _("{name} is primary and no measure of this evaluation.").format(name=unknown[0]),
            code="unknown_primary",
        )
    if rules.get("test") == "mcnemar" and not all(one.is_binary for one in measures):
        raise RunsUnfit(
            _("McNemar's test compares values of 0 and 1: of Success alone."), code="not_binary"
        )
    return Settings(
        measures=measures,
        primary=primary,
        ties=rules.get("ties", "falling"),
        single_precision=rules.get("single_precision", True),
        missing=rules.get("missing", "common"),
        leave_out_without_relevant=rules.get("leave_out_without_relevant", False),
        test=rules.get("test") or None,
        confidence=rules.get("confidence", 0.95),
        seed=rules.get("seed", 0),
    )


def _measures(names: Sequence[str]) -> tuple[Measure, ...]:
    return tuple(dict.fromkeys(measure(name) for name in names))


class CollectionKind(ResultKind[Collection]):
    subject = "collection"
    refusals = (RetrievalError, AnnotationError)

    def open_subject(self, key: int) -> Collection:
        if (collection := Collection.objects.select_related("team").filter(pk=key).first()) is None:
            raise CollectionUnfit(gettext("The collection was deleted meanwhile."))
        return collection

    def find_subject(self, name: str) -> Collection:
        if (collection := Collection.objects.filter(slug=name).first()) is None:
            raise CollectionUnfit(f"There is no collection {name}.", code="unknown_collection")
        return collection

    def offer_inputs(self, subject: Collection) -> Mapping[str, Sequence[CollectionFile]]:
        files = list(subject.files.usable().defer("faults").people_first())
        return {name: [file for file in files if self.fits(name, file)] for name in self.inputs}

    def fits(self, name: str, file: CollectionFile) -> bool:
        return file.kind == (Kind.QRELS if name == "qrels" else Kind.RUN)

    def name_input(self, row: CollectionFile) -> str:
        if row.made_by == CollectionFile.MadeBy.SIMULATED:
            return gettext("{name} (simulated workers)").format(name=row.name)
        return f"{row.name} ({row.family})" if row.family else row.name

    def load_inputs(self, subject: Collection, keys: Sequence[int]) -> Sequence[CollectionFile]:
        files = list(subject.files.usable().filter(pk__in=keys).order_by("kind", "name"))
        if len(files) != len(keys):
            raise CollectionUnfit(gettext("A file was removed meanwhile. Choose the files again."))
        return files

    def describe_inputs(self, subject: Collection, inputs: Sequence[CollectionFile]) -> list[Any]:
        return [
            [file.kind, file.name, file.family, file.made_by, file.sha256]
            for file in sorted(inputs, key=lambda file: (file.kind, file.name))
        ]

    def keep_inputs(self, result: Result, inputs: Sequence[CollectionFile]) -> None:
        for file in inputs:
            ResultFile.objects.create(
                version=result,
                file=file,
                kind=file.kind,
                name=file.name,
                family=file.family,
                made_by=file.made_by,
                sha256=file.sha256,
            )

    def list_kept_inputs(self, result: Result) -> Sequence[int]:
        return list(
            ResultFile.objects.filter(version=result)
            .exclude(file=None)
            .values_list("file", flat=True)
        )

    def prefer_inputs(self, subject: Collection) -> Mapping[str, Sequence[int | None]]:
        evaluated = Result.objects.of(subject, ResultType.EVALUATION)[:1]
        qrels = ResultFile.objects.filter(version__in=list(evaluated), kind=Kind.QRELS)
        return {"qrels": list(qrels.values_list("file", flat=True))}


class RunsKind(CollectionKind):
    inputs = {"qrels": QRELS, "runs": RUNS}
    fields_of_errors = {
        "unknown_measure": ("others", "measures"),
        "no_measure": ("measures",),
        "unknown_primary": ("primary",),
        "not_binary": ("test",),
    }

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        settings_of(settings)


def find_measure(result: Result, rows: str) -> str:
    """The first primary measure of the rows; sentences and charts are about it."""
    names: list[str] = [one["measure"] for one in result.record[rows]]
    return next((name for name in result.settings.get("primary", []) if name in names), names[0])


def write_rows(model: type[models.Model], rows: Iterable[Mapping[str, Any]]) -> None:
    for some in batched(rows, ROWS_AT_ONCE):  # bulk_create makes a list of all it is given
        model._default_manager.bulk_create(model(**row) for row in some)
