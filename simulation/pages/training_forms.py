"""What training a recommender asks for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Team
from accounts.names import require_visible
from simulation.models import StoredCatalogue, StoredRecommender
from simulation.models.catalogues import NAME_LENGTH
from simulation.pages.catalogue_choices import DRAWN, STORED
from simulation.stored_catalogues import MOST_DRAWN
from simulation.stored_training import MOST_EPOCHS, REINFORCED

KINDS = [
    ("gru-sl", gettext_lazy("GRU-SL: supervised, by a margin to the target (Guo 2018)")),
    ("gru-rl", gettext_lazy("GRU-RL: goes on from a GRU-SL, looking ahead (Guo 2018)")),
    ("gru-rl-later", gettext_lazy("GRU-RL by policy gradient: goes on from a GRU-SL (Wu 2022)")),
    ("ege", gettext_lazy("EGE: estimator, generator, evaluator (Wu 2021)")),
]


class TrainingForm(forms.Form):
    """A recommender's kind, what it is trained on, and for how long."""

    name = forms.CharField(
        label=gettext_lazy("Name of the recommender"),
        max_length=NAME_LENGTH,
        validators=[require_visible],
        initial="GRU-SL",
    )
    kind = forms.ChoiceField(label=gettext_lazy("Kind"), choices=KINDS)
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"), queryset=Team.objects.none(), empty_label=None
    )
    catalogue = forms.ChoiceField(
        label=gettext_lazy("Catalogue"),
        help_text=gettext_lazy(
            "It recommends from this catalogue alone. Four fifths of the items are for training."
        ),
    )
    n_items = forms.IntegerField(
        label=gettext_lazy("Drawn shoes"), initial=5000, min_value=50, max_value=MOST_DRAWN
    )
    start_from = forms.ChoiceField(
        label=gettext_lazy("Goes on from"),
        required=False,
        help_text=gettext_lazy("Of GRU-RL: a GRU-SL of the same catalogue, width and join."),
    )
    width = forms.IntegerField(label=gettext_lazy("Width"), initial=64, min_value=4, max_value=1024)
    epochs = forms.IntegerField(
        label=gettext_lazy("Epochs"), initial=15, min_value=1, max_value=MOST_EPOCHS
    )
    seed = forms.IntegerField(
        label=gettext_lazy("Seed"), initial=0, min_value=0, max_value=2**31 - 1
    )

    def __init__(self, teams: list[Team], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.teams = teams
        team, catalogue = self.fields["team"], self.fields["catalogue"]
        start = self.fields["start_from"]
        assert isinstance(team, forms.ModelChoiceField)
        assert isinstance(catalogue, forms.ChoiceField)
        assert isinstance(start, forms.ChoiceField)
        team.queryset = Team.objects.filter(pk__in=[one.pk for one in teams]).order_by("name")
        catalogues = StoredCatalogue.objects.filter(team__in=teams).order_by("-pk")
        catalogue.choices = [
            *((f"{STORED}:{one.pk}", one.name) for one in catalogues),
            (DRAWN, _("drawn shoes, as many as below")),
        ]
        supervised = StoredRecommender.objects.filter(catalogue__team__in=teams, kind="gru-sl")
        rows = supervised.exclude(finished_at=None).select_related("catalogue")
        self.supervised = {str(row.pk): row for row in rows}
        names = [(key, f"{row} ({row.catalogue})") for key, row in self.supervised.items()]
        start.choices = [("", _("nothing")), *names]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("kind") in REINFORCED and not data.get("start_from"):
            self.add_error("start_from", _("Choose the GRU-SL that it goes on from."))
        return data

    @property
    def choices(self) -> dict[str, Any]:
        """Settings beside those that were published for the kind."""
        return {name: self.cleaned_data[name] for name in ("width", "epochs", "seed")}

    @property
    def supervised_one(self) -> StoredRecommender | None:
        """The recommender to start from."""
        return self.supervised.get(self.cleaned_data["start_from"])
