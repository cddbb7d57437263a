import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction
from django.db.models import RestrictedError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from metrics.scorers.errors import model_libraries
from simulation.exceptions import ExperimentUnfit
from simulation.models import StoredCatalogue, StoredRecommender, TrainingEpoch
from simulation.stored_catalogues import read_stored, read_stored_critic
from work.execution import RunningJob
from work.models import Job
from work.tasks import request_job, stop_job

TRAIN = "train_recommender"
REINFORCED = ("gru-rl", "gru-rl-later")
LEAST_ITEMS = 50
MOST_EPOCHS = 200


def request_training(
    *,
    catalogue: StoredCatalogue,
    name: str,
    kind: str,
    choices: Mapping[str, Any],
    start_from: StoredRecommender | None,
    actor: User | None,
) -> StoredRecommender:
    from simulation.recommenders.trained.settings import settings_of

    try:
        settings = settings_of(kind, **choices)
    except ValueError as error:
        raise ExperimentUnfit(f"{error}.") from None
    _require(catalogue, kind, settings.epochs, start_from)
    row = StoredRecommender(
        catalogue=catalogue,
        name=name.strip(),
        kind=kind,
        rules=settings.record(),
        start_from=start_from if kind in REINFORCED else None,
        n_epochs=settings.epochs,
        created_by=actor,
    )
    with transaction.atomic():
        StoredCatalogue.objects.select_for_update().get(pk=catalogue.pk)
        row = _same_training(row) or _begin(row, actor)
    resume_training(recommender=row, actor=actor)
    return row


def _same_training(row: StoredRecommender) -> StoredRecommender | None:
    """The unfinished training of that name and settings: the form was sent twice. Raises
    ExperimentUnfit if the name is taken."""
    same = row.catalogue.recommenders.filter(name=row.name).first()
    if same is None:
        return None
    own = (row.kind, json.loads(json.dumps(row.rules)), row.start_from_id)
    if own == (same.kind, same.rules, same.start_from_id) and same.finished_at is None:
        return same
    raise ExperimentUnfit(
        _("Another recommender of this catalogue is called {name}.").format(name=row.name)
    )


def _begin(row: StoredRecommender, actor: User | None) -> StoredRecommender:
    row.save(force_insert=True)
    record(
        team=row.catalogue.team,
        actor=actor,
        action="recommender.train",
        subject=row.name,
        details={"kind": row.kind, "catalogue": row.catalogue.name},
    )
    return row


def _require(
    catalogue: StoredCatalogue,
    kind: str,
    epochs: int,
    start_from: StoredRecommender | None,
) -> None:
    if catalogue.n_items < LEAST_ITEMS:
        raise ExperimentUnfit(
            _("A catalogue to train on has at least {n} items.").format(n=LEAST_ITEMS)
        )
    if epochs > MOST_EPOCHS:
        raise ExperimentUnfit(_("Train at most {n} epochs.").format(n=MOST_EPOCHS))
    if kind in REINFORCED and (start_from is None or start_from.finished_at is None):
        raise ExperimentUnfit(
            _("{kind} goes on from a GRU-SL that was trained to the end: choose one.").format(
                kind=kind
            )
        )


def resume_training(*, recommender: StoredRecommender, actor: User | None) -> Job:
    return request_job(
        kind=TRAIN,
        subject=subject_of_training(recommender),
        arguments={"recommender": recommender.pk},
        title=_("Training {name}").format(name=recommender.name),
        requested_by=actor,
    )


def subject_of_training(recommender: StoredRecommender) -> str:
    return f"recommender:{recommender.pk}"


def train_recommender(running: RunningJob) -> str:
    from simulation.recommenders.trained.settings import settings_from

    with model_libraries():
        from simulation.recommenders.trained.training import train

    rows = StoredRecommender.objects.select_related("catalogue", "start_from")
    row = rows.filter(pk=running.arguments["recommender"]).first()
    if row is None:
        raise ExperimentUnfit(_("The recommender was deleted meanwhile."))
    catalogue = read_stored(row.catalogue)
    steps = running.progress(_("epoch"))(range(row.n_epochs), row.n_epochs)
    for _done in range(row.epochs.count() + 1):
        next(steps, None)
    with TemporaryDirectory(prefix="assay-training-") as folder:
        path, start = _files(Path(folder), row)

        def keep(epoch: dict[str, float]) -> None:
            _keep_epoch(running, row, path, epoch)
            next(steps, None)

        train(
            catalogue,
            read_stored_critic(row.catalogue),
            settings_from(row.rules),
            path,
            start_from=start,
            report=keep,
        )
    row.finished_at = timezone.now()
    row.save(update_fields=["finished_at"])
    best = max(row.epochs.values_list("validation", flat=True))
    return _("nDCG@10 over turns {best} on validation items.").format(best=f"{best:.3f}")


def _files(folder: Path, row: StoredRecommender) -> tuple[Path, Path | None]:
    path, start = folder / f"{row.pk}.pt", None
    if row.checkpoint:
        path.write_bytes(bytes(row.checkpoint))
    if row.start_from is not None:
        start = folder / f"{row.start_from.pk}.pt"
        start.write_bytes(bytes(row.start_from.checkpoint or b""))
    return path, start


def _keep_epoch(
    running: RunningJob, row: StoredRecommender, path: Path, epoch: dict[str, float]
) -> None:
    row.checkpoint = path.read_bytes()
    row.sha256 = sha256(row.checkpoint).hexdigest()
    values = {name: epoch[name] for name in ("loss", "validation", "seconds")}
    with transaction.atomic():
        running.hold()
        row.save(update_fields=["checkpoint", "sha256"])
        TrainingEpoch.objects.create(recommender=row, epoch=int(epoch["epoch"]), **values)
    running.check()


@transaction.atomic
def delete_recommender(*, recommender: StoredRecommender, actor: User | None) -> None:
    for job in Job.objects.about(subject_of_training(recommender)).unfinished():
        stop_job(job=job)
    team, name = recommender.catalogue.team, recommender.name
    try:
        recommender.delete()
    except RestrictedError:
        raise ExperimentUnfit(
            _(
                "{name} is in use: delete the experiments and recommenders that rest on it first."
            ).format(name=name)
        ) from None
    record(team=team, actor=actor, action="recommender.delete", subject=name)
