from datetime import UTC, datetime
from decimal import Decimal

from hits import connections, models
from metrics.stored_scores import write_scores
from results import computing, kinds
from tests.annotation.studies import rated_study
from validation.analysis import Settings
from validation.result_kinds.report import ReportKind
from validation.result_kinds.validation import ValidationKind, make_validation

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def scored_study(slug="scored", *, metrics=("nll",), **fields):
    study = rated_study(slug, **fields)
    for metric in metrics:
        add_scores(study, metric)
    return study


def add_scores(study, metric="nll", *, higher_is_better=True):
    candidates = [
        (item.key, candidate.key)
        for item in study.items.all()
        for candidate in item.candidates.all()
    ]
    write_scores(
        study=study,
        metric=metric,
        signature=f"{metric}|v:1",
        values={pair: number / 8 for number, pair in enumerate(candidates)},
        higher_is_better=higher_is_better,
    )


def add_batch(study, *, n_published=1, max_assignments=3, round=1):
    batch = models.Batch.objects.create(
        study=study,
        connection=connections.site_connection(),
        round=round,
        title=f"Judge {study.slug}",
        description="Read and judge.",
        reward_usd=Decimal("0.10"),
        max_assignments=max_assignments,
        hit_type_id="3TYPE" if n_published else "",
    )
    for position, item in enumerate(study.items.all()):
        hit_id = f"3HIT{batch.pk}N{position}" if position < n_published else ""
        models.Hit.objects.create(batch=batch, item=item, hit_id=hit_id)
    return batch


def add_recruitment(study, *, state="active", round=2, **fields):
    batch = add_batch(study, round=round)
    models.Batch.objects.filter(pk=batch.pk).update(is_recruited=True, reward_usd=0)
    recruiter, _ = models.Recruiter.objects.get_or_create(
        connection=batch.connection,
        public_id="5RECRUITER",
        defaults={
            "name": "Prolific",
            "is_connected": True,
            "account": "A researcher",
            "currency": "GBP",
            "fetched_at": NOON,
        },
    )
    values = {
        "batch": models.Batch.objects.get(pk=batch.pk),
        "recruiter": recruiter,
        "public_id": "study-token",
        "reward": Decimal("1.50"),
        "minutes": 10,
        "items": 2,
        "places": 4,
        "quoted_places": 4,
        "quoted_cost": Decimal("8.00"),
        "is_under_way": False,
        "sessions": {"finished": 3, "returned": 1},
        "outcomes": {"completed": 3, "no_consent": 1},
        "charges": {"study": "8.00", "reward": "2.0000", "bonus": "0.6667"},
        "fetched_at": NOON,
    }
    recruitment = models.Recruitment.objects.create(state=state, **values | fields)
    models.RecruiterCall.objects.create(
        recruitment=recruitment,
        number=7,
        kind="bonus",
        is_uncertain=True,
        amount=Decimal("0.50"),
        currency="GBP",
        worker_id="A1IDENTIFIABLE",
        submission_id="5f5f5f5f",
        problem="No answer came.",
    )
    return recruitment


def add_assignment(hit, worker="A1WORKER", *, problem=""):
    account, _ = models.Worker.objects.get_or_create(marketplace="local", worker_id=worker)
    return models.Assignment.objects.create(
        hit=hit,
        worker=account,
        assignment_id=f"3ASSIGNMENT{hit.pk}{worker}",
        status=models.Assignment.Status.SUBMITTED,
        answer_xml="<answer/>",
        accepted_at=NOON,
        submitted_at=NOON,
        problem=problem,
    )


def store_validation(study, **settings):
    """A quick report on the study's metrics, and its file, as the background worker keeps them."""
    quick = Settings(n_permutations=1, n_splits=0, n_worst=0, **{"n_resamples": 0} | settings)
    version = make_validation(study=study, settings=quick).version
    study = version.subject
    validation, report = ValidationKind(), ReportKind()
    version.fingerprint = validation.fingerprint(study)
    version.save(update_fields=["fingerprint"])
    computing.create_result(
        subject=study,
        kind=report.name,
        form=report.form,
        fingerprint=report.fingerprint(study),
        computed=kinds.Computed(parts={"report.html": b"<p>Found</p>"}),
    )
