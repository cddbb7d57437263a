"""What a new study of recorded dialogues asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.names import require_visible
from annotation.pages.upload_forms import teams_to_import_into
from simulation.models import (
    DialogueStudy,
    ExperimentVersion,
    StoredExperiment,
)
from simulation.outcome_study import LEAST_TARGETS

if TYPE_CHECKING:
    from accounts.models import User

KIND = DialogueStudy.Kind
VERSION, LOG = "version", "log"
MOST_OFFERED, MOST_SEED = 200, 2**31 - 1


class NewDialogueStudyForm(forms.Form):
    """Which dialogues, and which question about them."""

    title = forms.CharField(
        label=gettext_lazy("Name of the study"), max_length=128, validators=[require_visible]
    )
    kind = forms.ChoiceField(
        label=gettext_lazy("What people are asked"),
        choices=[
            (
                KIND.OUTCOMES,
                gettext_lazy("Outcomes: which of the dialogues' final items would do?"),
            ),
            (
                KIND.SWITCHING,
                gettext_lazy("Switching: at a turn, keep looking, take another, or leave?"),
            ),
        ],
        widget=forms.RadioSelect,
        initial=KIND.OUTCOMES,
    )
    dialogues = forms.ChoiceField(
        label=gettext_lazy("Dialogues"),
        help_text=gettext_lazy(
            "Catalogue and judgments are those of the experiment, for a log that you send as well."
        ),
    )
    file = forms.FileField(
        label=gettext_lazy("Log of dialogues"),
        required=False,
        help_text=gettext_lazy(
            "Only where Dialogues has “the log that I send”: JSON Lines, as “simulate --log” and "
            "the downloads write them."
        ),
    )
    final_user = forms.CharField(
        label=gettext_lazy("Whose final items"),
        required=False,
        max_length=255,
        help_text=gettext_lazy(
            "Outcomes only: the simulated user's name as the log has it; its first where this is "
            "empty."
        ),
    )
    most_targets = forms.IntegerField(
        label=gettext_lazy("Targets to draw"),
        required=False,
        min_value=LEAST_TARGETS,
        max_value=100_000,
        help_text=gettext_lazy("Outcomes only; all where this is empty."),
    )
    per_target = forms.IntegerField(
        label=gettext_lazy("Turns of each target"),
        initial=2,
        min_value=1,
        max_value=20,
        help_text=gettext_lazy("Switching only: a loss and a gain by turns."),
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed of what is drawn"), initial=0, min_value=0, max_value=MOST_SEED
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.experiments = experiments_of(user)
        field = self.fields["dialogues"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(one.name, list(self._choices(one))) for one in self.experiments.values()]

    @staticmethod
    def _choices(experiment: StoredExperiment) -> Any:
        for version in experiment.finished:  # type: ignore[attr-defined]
            text = _("{name}, result {number}")
            title = text.format(name=experiment.name, number=version.number)
            yield f"{VERSION}:{version.pk}", title
        yield (
            f"{LOG}:{experiment.pk}",
            _("{name}, the log that I send").format(name=experiment.name),
        )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        wants_log = str(data.get("dialogues", "")).startswith(LOG)
        if wants_log and not data.get("file") and "file" not in self.errors:
            text = _("Choose the log of the dialogues.")
            self.add_error("file", forms.ValidationError(text, code="log_missing"))
        if str(data.get("dialogues", "")).startswith(VERSION) and data.get("kind") == KIND.OUTCOMES:
            self._check_outcomes(self._version(int(data["dialogues"].partition(":")[2])), data)
        return data

    def _check_outcomes(self, version: ExperimentVersion, data: dict[str, Any]) -> None:
        """What is known of a result before its dialogues are read, and can still be changed."""
        if (n_targets := self.experiments[version.experiment_id].n_targets) < LEAST_TARGETS:
            text = _("The experiment has {n} targets; an outcome study needs {least}.")
            text = text.format(n=n_targets, least=LEAST_TARGETS)
            self.add_error("dialogues", forms.ValidationError(text, code="too_few_targets"))
        if len(version.rules["recommenders"]) < 2:
            text = _("The result is of one recommender; an outcome study needs two.")
            self.add_error("dialogues", forms.ValidationError(text, code="one_recommender"))
        names = list(version.users.order_by("position").values_list("name", flat=True))
        wanted = data.get("final_user")
        if wanted and wanted not in names:
            text = _("The result has no user “{name}”. It has: {names}.")
            text = text.format(name=wanted, names="; ".join(names))
            self.add_error("final_user", forms.ValidationError(text, code="unknown_user"))

    @property
    def request(self) -> dict[str, Any]:
        """What `request_dialogue_study` takes."""
        data = self.cleaned_data
        what, _colon, key = data["dialogues"].partition(":")
        version = self._version(int(key)) if what == VERSION else None
        experiment = self.experiments[version.experiment_id if version else int(key)]
        names = ("title", "final_user", "most_targets", "per_target", "seed")
        return {name: data[name] for name in names} | {
            "kind": KIND(data["kind"]),
            "experiment": experiment,
            "version": version,
            "file": None if version else data["file"],
        }

    def _version(self, key: int) -> ExperimentVersion:
        rows = (one.finished for one in self.experiments.values())  # type: ignore[attr-defined]
        versions: dict[int, ExperimentVersion] = {
            version.pk: version for some in rows for version in some
        }
        return versions[key]


def experiments_of(user: User) -> dict[int, StoredExperiment]:
    """Those of whose teams the user may make studies and see the recommenders, the newest first,
    each with its finished versions."""
    rows = StoredExperiment.objects.visible_to(user).filter(team__in=teams_to_import_into(user))
    found = {one.pk: one for one in rows.select_related("team", "catalogue")[:MOST_OFFERED]}
    versions = ExperimentVersion.objects.filter(experiment__in=list(found))
    for one in found.values():
        one.finished = []  # type: ignore[attr-defined]
    for version in versions.exclude(finished_at=None).order_by("-number"):
        found[version.experiment_id].finished.append(version)  # type: ignore[attr-defined]
    return found
