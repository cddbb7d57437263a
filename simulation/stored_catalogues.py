import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import RestrictedError
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import Team, User
from annotation.exceptions import ImportRefused
from annotation.readers.archives import UNPACKING_ERRORS, require_few_members, short_file_name
from annotation.uploads import PART_BYTES
from metrics.scorers.errors import model_libraries
from simulation.catalogue import Catalogue
from simulation.critics import Critic
from simulation.drawn_products import drawn_catalogue, stand_in_catalogue
from simulation.exceptions import CatalogueUnfit, ExperimentUnfit
from simulation.models import CataloguePart, StoredCatalogue, StoredRecommender, TrainingEpoch
from simulation.models.catalogue import NAME_LENGTH
from simulation.plans import named_critic
from simulation.product_files import (
    EMBEDDINGS,
    IDS,
    SPRITE,
    captions_of,
    is_known,
    read_names,
    read_sent,
    require_apart,
)
from stats.arguments import Floats
from work.execution import RunningJob
from work.models import Job
from work.tasks import request_job, stop_job

KIND = StoredCatalogue.Kind
MOST_UNPACKED = 5
PNG = b"\x89PNG"
MOST_DRAWN = 50_000
# Members of our own zips all have the same time, so that the same items are the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)


def drawn_products(
    *, team: Team, n_items: int, seed: int = 0, actor: User | None
) -> StoredCatalogue:
    if not 2 <= n_items <= MOST_DRAWN:
        raise CatalogueUnfit(_("Draw from 2 to {n} products.").format(n=f"{MOST_DRAWN:,}"))
    name = _("{n} drawn shoes, seed {seed}").format(n=f"{n_items:,}", seed=seed)
    mark = sha256(f"drawn {n_items} {seed}".encode()).hexdigest()
    return _store(team, KIND.DRAWN, name, n_items, seed, mark, actor)


def stand_ins(
    *, team: Team, ids: Sequence[str], seed: int = 0, actor: User | None
) -> StoredCatalogue:
    name = _("{n} ids with stand-in embeddings, seed {seed}").format(n=f"{len(ids):,}", seed=seed)
    content = packed({IDS: _lines(ids)})
    stand_in_catalogue(list(ids), seed=seed)  # a CatalogueUnfit now, and not in the background
    mark = sha256(content + f" stand-in {seed}".encode()).hexdigest()
    return _store(team, KIND.STAND_IN, name, len(ids), seed, mark, actor, content)


def vectors(
    *, team: Team, name: str, ids: Sequence[str], embeddings: Floats, actor: User | None
) -> StoredCatalogue:
    require_apart(Catalogue(tuple(ids), np.asarray(embeddings, dtype=np.float64), name))
    array = BytesIO()
    np.save(array, np.asarray(embeddings, dtype=np.float32), allow_pickle=False)
    content = packed({IDS: _lines(ids), EMBEDDINGS: array.getvalue()})
    return _store(team, KIND.FILES, name, len(ids), 0, sha256(content).hexdigest(), actor, content)


def store_upload(*, team: Team, name: str, file: BinaryIO, actor: User | None) -> StoredCatalogue:
    """A zip in one of the layouts, optionally with relative captions, or a sprite. Raises
    CatalogueUnfit or CaptionsUnfit."""
    content = file.read()
    if content.startswith(PNG):
        content = packed({SPRITE: content})
    with _unpacked(content) as folder:
        catalogue = read_sent(folder, source=name)
        named_critic(catalogue, captions_of(folder))  # refuses captions of other items
    mark = sha256(content).hexdigest()
    return _store(team, KIND.FILES, name, len(catalogue), 0, mark, actor, content)


@transaction.atomic
def _store(
    team: Team,
    kind: str,
    name: str,
    n_items: int,
    seed: int,
    mark: str,
    actor: User | None,
    content: bytes = b"",
) -> StoredCatalogue:
    """Returns the team's equal catalogue if there is one."""
    common: dict[str, Any] = {"kind": kind, "name": name[:NAME_LENGTH], "n_items": n_items}
    row, is_new = StoredCatalogue.objects.get_or_create(
        team=team, sha256=mark, defaults=common | {"seed": seed, "created_by": actor}
    )
    if is_new:
        for position, start in enumerate(range(0, len(content), PART_BYTES)):
            part = content[start : start + PART_BYTES]
            CataloguePart.objects.create(catalogue=row, position=position, content=part)
        record(team=team, actor=actor, action="catalogue.create", subject=row.name)
    return row


@transaction.atomic
def delete_catalogue(*, catalogue: StoredCatalogue, actor: User | None) -> None:
    team, name = catalogue.team, catalogue.name
    StoredCatalogue.objects.select_for_update().get(pk=catalogue.pk)
    # Its recommenders would go with it, which nobody asked for.
    if catalogue.experiments.exists() or catalogue.recommenders.exists():
        raise CatalogueUnfit(
            _(
                "{name} is in use: delete the experiments and recommenders that rest on it first."
            ).format(name=name)
        )
    catalogue.delete()
    record(team=team, actor=actor, action="catalogue.delete", subject=name)


def read_stored(row: StoredCatalogue) -> Catalogue:
    """Each process caches the last two."""
    return _read(row.pk, row.sha256)


def read_stored_critic(row: StoredCatalogue) -> Critic:
    return _critic(row.pk, row.sha256)


@lru_cache(maxsize=2)
def _read(pk: int, _mark: str) -> Catalogue:
    row = StoredCatalogue.objects.get(pk=pk)
    if row.kind == KIND.DRAWN:
        return drawn_catalogue(row.n_items, seed=row.seed)
    with _unpacked(_content(row)) as folder:
        if row.kind == KIND.STAND_IN:
            return stand_in_catalogue(read_names(folder / IDS), seed=row.seed)
        return read_sent(folder, source=row.name)


@lru_cache(maxsize=2)
def _critic(pk: int, mark: str) -> Critic:
    row = StoredCatalogue.objects.get(pk=pk)
    catalogue = _read(pk, mark)
    if row.kind != KIND.FILES:
        return named_critic(catalogue)
    with _unpacked(_content(row)) as folder:
        return named_critic(catalogue, captions_of(folder))


def _content(row: StoredCatalogue) -> bytes:
    return b"".join(bytes(part.content) for part in row.parts.order_by("position"))


def packed(members: dict[str, bytes]) -> bytes:
    """A zip whose bytes depend on the content only."""
    content = BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, date_time=EPOCH)
            archive.writestr(info, data, compress_type=zipfile.ZIP_DEFLATED)
    return content.getvalue()


def pictures_zip(catalogue: Catalogue) -> bytes:
    assert catalogue.picture is not None
    pictures = ((one, catalogue.picture(number)) for number, one in enumerate(catalogue.ids))
    return packed(
        {f"{one}.{'png' if data.startswith(PNG) else 'svg'}": data for one, data in pictures}
    )


@contextmanager
def _unpacked(content: bytes) -> Iterator[Path]:
    most = MOST_UNPACKED * settings.UPLOAD_MAX_MEGABYTES * 1024**2
    with TemporaryDirectory(prefix="assay-catalogue-") as name:
        folder, path = Path(name), Path(name) / "catalogue.zip"
        path.write_bytes(content)
        try:
            require_few_members(path)
            with zipfile.ZipFile(path) as archive:
                members = _members(archive)
                if sum(one.file_size for one in members.values()) > most:
                    raise CatalogueUnfit(
                        _("Unpacked it has more than {n} MiB.").format(n=f"{most // 1024**2:,}")
                    )
                for base, member in members.items():
                    (folder / base).write_bytes(archive.read(member))
        except ImportRefused as refused:
            raise CatalogueUnfit(str(refused)) from None
        except UNPACKING_ERRORS as error:
            if isinstance(error, OSError) and error.errno:  # of the disk, not of what is read
                raise
            raise CatalogueUnfit(
                _("It is not a zip that can be unpacked: {error}.").format(error=error)
            ) from None
        yield folder


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for one in archive.infolist():
        base = short_file_name(Path(one.filename).name)
        # macOS packs a hidden file beside each of a folder's.
        if one.is_dir() or base.startswith(".") or not is_known(base):
            continue
        if (other := members.get(base)) is not None:
            names = " and ".join((other.filename, one.filename))
            raise CatalogueUnfit(_("It holds {names}: send one of them.").format(names=names))
        members[base] = one
    return members


def _lines(ids: Sequence[str]) -> bytes:
    return "".join(f"{one}\n" for one in ids).encode()


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
