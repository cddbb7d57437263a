"""Studies made of recorded dialogues, and their items.

An item of an outcome study has for each target what every recommender's dialogue ended with, and an
item at random to compare with, blind and shuffled. A worker sees the target and the other products,
each once whoever ended with it. Which recommender it was, and what simulated users made of the same
dialogues, is stored apart before anybody is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.models import Team, User
from annotation.imports import ImportResult, import_study
from annotation.models import Study
from annotation.new_studies import begin_study
from annotation.protocols.templates import read_protocol
from annotation.readers.drafts import DRAFTS_WITH_PICTURES_AT_ONCE, ItemDraft, StudyDraft
from annotation.study_facts import request_study_job
from annotation.uploads import PART_BYTES, SentFile, plain_file_name, require_size
from presentation.numbers import group_values
from results.models import Result
from simulation.catalogue import Catalogue
from simulation.exceptions import DialoguesUnfit
from simulation.models import (
    DialogueLogPart,
    DialogueStudy,
    FinalItem,
    SimulatedOutcome,
    StoredExperiment,
)
from simulation.outcome_study import LEAST_TARGETS
from simulation.plans import plan_of
from simulation.recorded_dialogues import (
    SwitchingItems,
    log_rows,
    log_sha256,
    losses_and_gains,
    product_candidate,
    product_picture,
    product_words,
    require_in,
    require_log,
    require_same_items,
    switching_items,
)
from simulation.run_pieces import LOG_NAME, log_lines
from simulation.stored_catalogues import read_stored
from work.execution import RunningJob

NEEDED = ("recommender", "user", "seed", "target", "turn", "shown", "found")
ROWS_AT_ONCE = 2000


@dataclass(frozen=True)
class Ending:
    shown: str
    turn: int
    found: bool


@dataclass(frozen=True)
class RecordedEndings:
    of: Mapping[tuple[str, str, str, int], Ending]
    recommenders: tuple[str, ...]
    users: tuple[str, ...]
    targets: tuple[str, ...]
    seeds: tuple[int, ...]

    def final(self, recommender: str, user: str, target: str) -> Ending:
        return self.of[recommender, user, target, min(self.seeds)]

    def outcome(self, recommender: str, user: str, target: str) -> float:
        """The share of dialogues, one per seed, whose last item the user accepts."""
        found = [self.of[recommender, user, target, seed].found for seed in self.seeds]
        return sum(found) / len(found)


def read_endings(path: Path) -> RecordedEndings:
    of: dict[tuple[str, str, str, int], Ending] = {}
    for _number, row in log_rows(path, NEEDED):
        key = (row["recommender"], row["user"], row["target"], row["seed"])
        if key not in of or of[key].turn <= row["turn"]:
            of[key] = Ending(row["shown"], row["turn"], row["found"])
    endings = RecordedEndings(
        of,
        recommenders=tuple(dict.fromkeys(key[0] for key in of)),
        users=tuple(dict.fromkeys(key[1] for key in of)),
        targets=tuple(dict.fromkeys(key[2] for key in of)),
        seeds=tuple(dict.fromkeys(key[3] for key in of)),
    )
    _require_complete(path, endings)
    return endings


def _require_complete(path: Path, endings: RecordedEndings) -> None:
    if len(endings.recommenders) < 2:
        raise DialoguesUnfit(
            _("{file} has fewer than two recommenders, which have no order.").format(file=path.name)
        )
    if len(endings.targets) < LEAST_TARGETS:
        raise DialoguesUnfit(
            _("{file} has dialogues about {n} targets; an outcome study needs {least}.").format(
                file=path.name, n=len(endings.targets), least=LEAST_TARGETS
            )
        )
    expected = product(endings.recommenders, endings.users, endings.targets, endings.seeds)
    if missing := next((one for one in expected if one not in endings.of), None):
        recommender, user, target, seed = missing
        raise DialoguesUnfit(
            _(
                "{file} has no dialogue of {user} with {recommender} about {target}, "
                "seed {seed}: each user must have had one with every recommender "
                "about every target."
            ).format(file=path.name, user=user, recommender=recommender, target=target, seed=seed)
        )


@dataclass(frozen=True)
class OutcomeItems:
    finals: Mapping[str, Mapping[str, Ending]]
    items: Sequence[ItemDraft]
    endings: RecordedEndings
    final_user: str
    catalogue: str
    seed: int
    kind: ClassVar[DialogueStudy.Kind] = DialogueStudy.Kind.OUTCOMES

    @property
    def draft(self) -> StudyDraft:
        at_once = DRAFTS_WITH_PICTURES_AT_ONCE
        return StudyDraft(kind="alternatives", items=self.items, drafts_at_once=at_once)

    @property
    def origin(self) -> dict[str, Any]:
        return {
            "catalogue": self.catalogue,
            "seed": self.seed,
            "final_user": self.final_user,
            "n_targets_left_out": len(self.endings.targets) - len(self.finals),
        }

    def store(self, dialogues: DialogueStudy) -> None:
        keys = dict(dialogues.study.items.values_list("key", "pk"))
        FinalItem.objects.bulk_create(self._final_items(dialogues, keys), batch_size=ROWS_AT_ONCE)
        outcomes = self._outcomes(dialogues, keys)
        SimulatedOutcome.objects.bulk_create(outcomes, batch_size=ROWS_AT_ONCE)

    def _final_items(
        self, dialogues: DialogueStudy, keys: Mapping[str, int]
    ) -> Iterator[FinalItem]:
        for target, rows in self.finals.items():
            for recommender, one in rows.items():
                yield FinalItem(
                    dialogues=dialogues,
                    item_id=keys[target],
                    recommender=recommender,
                    shown=one.shown,
                    turn=one.turn,
                    is_target=one.shown == target,
                )

    def _outcomes(
        self, dialogues: DialogueStudy, keys: Mapping[str, int]
    ) -> Iterator[SimulatedOutcome]:
        for user, recommender in product(self.endings.users, self.endings.recommenders):
            for target in self.finals:
                yield SimulatedOutcome(
                    dialogues=dialogues,
                    item_id=keys[target],
                    user=user,
                    recommender=recommender,
                    value=self.endings.outcome(recommender, user, target),
                )


def outcome_items(
    log: Path,
    catalogue: Catalogue,
    *,
    final_user: str = "",
    n_targets: int | None = None,
    seed: int = 0,
) -> OutcomeItems:
    """Final items of one user's dialogues (the log's first unless named) as items of a study.
    People's answers about them are compared with every user. Raises DialoguesUnfit."""
    endings = read_endings(log)
    user = final_user or endings.users[0]
    if user not in endings.users:
        raise DialoguesUnfit(
            _("{file} has no user '{user}'. It has {users}.").format(
                file=log.name, user=user, users=", ".join(endings.users)
            )
        )
    require_same_items(catalogue, losses_and_gains(log))
    rng = np.random.default_rng(seed)
    targets = _drawn_targets(endings.targets, n_targets, rng)
    finals = {target: _finals(endings, user, target, catalogue, rng) for target in targets}
    items = [
        _item(number, target, rows, catalogue, rng)
        for number, (target, rows) in enumerate(finals.items(), 1)
    ]
    return OutcomeItems(finals, items, endings, user, catalogue.source, seed)


def _drawn_targets(targets: Sequence[str], n: int | None, rng: np.random.Generator) -> list[str]:
    if n is None or n == len(targets):
        return list(targets)
    if n > len(targets):
        raise DialoguesUnfit(
            _("There are dialogues about {there} targets, not about {n}.").format(
                there=f"{len(targets):,}", n=f"{n:,}"
            )
        )
    if n < LEAST_TARGETS:
        raise DialoguesUnfit(
            _("An outcome study needs {least} targets, not {n}.").format(least=LEAST_TARGETS, n=n)
        )
    return [targets[place] for place in sorted(rng.choice(len(targets), n, replace=False))]


def _finals(
    endings: RecordedEndings,
    user: str,
    target: str,
    catalogue: Catalogue,
    rng: np.random.Generator,
) -> dict[str, Ending]:
    """By recommender; "" is a random item that no recommender ended with."""
    finals = {one: endings.final(one, user, target) for one in endings.recommenders}
    require_in(catalogue, {target, *(ending.shown for ending in finals.values())})
    taken = {target, *(ending.shown for ending in finals.values())}
    if len(taken) >= len(catalogue):
        raise DialoguesUnfit(
            _("The catalogue ({catalogue}) has no other item to compare with.").format(
                catalogue=catalogue.source
            )
        )
    while (other := catalogue.ids[int(rng.integers(len(catalogue)))]) in taken:
        pass
    return finals | {"": Ending(other, 0, False)}


def _item(
    number: int,
    target: str,
    finals: Mapping[str, Ending],
    catalogue: Catalogue,
    rng: np.random.Generator,
) -> ItemDraft:
    """The target itself is not asked about: next to it all others look worse."""
    shown = [one for one in dict.fromkeys(each.shown for each in finals.values()) if one != target]
    return ItemDraft(
        key=target,
        line=number,
        context=product_words(catalogue, target),
        picture=product_picture(catalogue, target),
        candidates=tuple(
            product_candidate(catalogue, shown[place]) for place in rng.permutation(len(shown))
        ),
    )


# Made of a log, with the data that workers do not see.
DialogueItems = OutcomeItems | SwitchingItems


@transaction.atomic
def import_dialogues(
    items: DialogueItems,
    *,
    log: Path,
    slug: str,
    title: str = "",
    owner: Any = None,
    team: Team | None = None,
) -> ImportResult:
    if Study.objects.filter(slug=slug).exists():
        raise DialoguesUnfit(
            _("There is a study '{study}' already. Choose another name.").format(study=slug),
            code="study_exists",
        )
    imported = import_study(
        draft=items.draft,
        path=log,
        slug=slug,
        title=title,
        owner=owner,
        team=team,
        protocol=read_protocol(items.kind),
    )
    _store(DialogueStudy(study=imported.study, kind=items.kind, log_name=log.name), items, log)
    return imported


@transaction.atomic
def fill_dialogues(dialogues: DialogueStudy, items: DialogueItems, *, log: Path) -> ImportResult:
    imported = import_study(draft=items.draft, path=log, slug=dialogues.study.slug)
    _store(dialogues, items, log)
    return imported


def _store(dialogues: DialogueStudy, items: DialogueItems, log: Path) -> None:
    for name, value in items.origin.items():
        setattr(dialogues, name, value)
    dialogues.log_sha256, dialogues.made_at = log_sha256(log), timezone.now()
    dialogues.save()
    items.store(dialogues)


MAKE_DIALOGUES = "make_dialogues"


def request_dialogue_study(
    *,
    kind: DialogueStudy.Kind,
    title: str,
    experiment: StoredExperiment,
    version: Result | None,
    file: SentFile | None,
    actor: User,
    final_user: str = "",
    per_target: int = 2,
    most_targets: int | None = None,
    seed: int = 0,
) -> DialogueStudy:
    """A study of the experiment's team. Its items come from a version's dialogues or an uploaded
    log, with the experiment's catalogue and judgments."""
    if version is None and file is None:
        raise DialoguesUnfit(_("Choose a result of the experiment, or send a log."))
    if file is not None:
        require_size(file)
    name = plain_file_name(file.name) if file else f"{experiment.slug}-{LOG_NAME}"
    if file is not None:
        # The rest is read in the background; another file altogether is noticed at once.
        first_line = next(iter(file.chunks(PART_BYTES)), b"").partition(b"\n")[0]
        require_log(name, first_line.decode(errors="replace"))
    with transaction.atomic():
        study = begin_study(title=title, owner=actor, team=experiment.team, template=kind)
        dialogues = DialogueStudy.objects.create(
            study=study,
            kind=kind,
            log_name=name,
            catalogue=experiment.catalogue.name,
            seed=seed,
            per_target=per_target if kind == DialogueStudy.Kind.SWITCHING else 0,
            final_user=final_user,
            most_targets=most_targets,
            experiment=experiment,
            version=None if file else version,
        )
        for position, part in enumerate(file.chunks(PART_BYTES) if file else ()):
            DialogueLogPart.objects.create(dialogues=dialogues, position=position, content=part)
    request_study_job(study=study, kind=MAKE_DIALOGUES, requested_by=actor)
    return dialogues


def make_dialogues(running: RunningJob) -> str:
    """Write the study's items in one transaction; then delete an uploaded log."""
    rows = DialogueStudy.objects.select_related("study", "experiment__catalogue", "version")
    dialogues = rows.filter(study=running.arguments["study"]).first()
    if dialogues is None or dialogues.experiment is None:
        raise DialoguesUnfit(_("The experiment was deleted meanwhile."))
    if dialogues.made_at is None:
        _make(running, dialogues, dialogues.experiment)
    return _("{n} items.").format(n=f"{dialogues.study.items.count():,}")


def _make(running: RunningJob, dialogues: DialogueStudy, experiment: StoredExperiment) -> None:
    if dialogues.version is None:
        _require_log(dialogues)
    with _log_on_disk(dialogues) as log:
        items = _items_of_log(dialogues, experiment, log)
        running.check()
        with transaction.atomic():
            running.hold()
            fill_dialogues(dialogues, items, log=log)
            dialogues.log_parts.all().delete()


def _require_log(dialogues: DialogueStudy) -> None:
    if not dialogues.log_parts.exists():
        raise DialoguesUnfit(
            _("The log could not be used and was forgotten. Make a study of another one.")
        )


def _items_of_log(
    dialogues: DialogueStudy, experiment: StoredExperiment, log: Path
) -> DialogueItems:
    try:
        return _items(dialogues, experiment, log)
    except DialoguesUnfit:
        dialogues.log_parts.all().delete()
        raise


@contextmanager
def _log_on_disk(dialogues: DialogueStudy) -> Iterator[Path]:
    with TemporaryDirectory(prefix="assay-dialogues-") as folder:
        path = Path(folder) / dialogues.log_name
        if dialogues.version is not None:
            with path.open("w", encoding="utf-8") as file:
                file.writelines(log_lines(dialogues.version))
        else:
            with path.open("wb") as binary:
                for part in dialogues.log_parts.order_by("position").iterator(chunk_size=4):
                    binary.write(part.content)
        yield path


def _items(dialogues: DialogueStudy, experiment: StoredExperiment, log: Path) -> DialogueItems:
    catalogue = read_stored(experiment.catalogue)
    if dialogues.kind == DialogueStudy.Kind.OUTCOMES:
        return outcome_items(
            log,
            catalogue,
            final_user=dialogues.final_user,
            n_targets=dialogues.most_targets,
            seed=dialogues.seed,
        )
    return switching_items(
        log,
        catalogue,
        _accepted(experiment, dialogues.version),
        per_target=dialogues.per_target,
        seed=dialogues.seed,
    )


def _accepted(experiment: StoredExperiment, version: Result | None) -> dict[str, list[str]]:
    """By target, from the grade that the version's users accepted (1 for a log)."""
    least = plan_of(version.settings).relevant_from if version else 1
    rows = experiment.judgments.filter(grade__gte=least).order_by("pk")
    return group_values(rows.values_list("target", "item"))
