from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _, gettext_lazy

from accounts.models import Team
from accounts.names import require_visible
from annotation.relevance import Source, relevance_sources
from console.forms import PlainForm, offer_choices
from simulation.exceptions import ExperimentUnfit
from simulation.models.catalogue import NAME_LENGTH
from simulation.pages.catalogue import CATALOGUE_FILES, SENT
from simulation.plans import EMBEDDING, MOST_TOLERANCE, RANDOM, Plan, controls, named_user, plan_of
from simulation.stored_catalogues import MOST_DRAWN
from simulation.stored_experiments import FORM
from simulation.users import NAMES, Kind, Mode

COMMON = ("nDCG@10", "RR@10", "Success@1", "nDCG@5", "P@5", "Success@10")
DEFAULT_MEASURES = ("nDCG@10", "RR@10", "Success@1")
TOL: Kind = "tol"
PROB: Kind = "prob"
NEEDED: tuple[tuple[Kind, str], ...] = (
    (TOL, "tolerances"), (PROB, "tolerances"), (PROB, "p_switch")
)  # fmt: skip
MOST_NUMBER = 2**31 - 1
# In standard deviations: what is certain to switch lies far below.
MOST_EFFECT = 10
NUMBERS_HELP = gettext_lazy("Numbers with commas between.")


def numbers(text: str, *, whole: bool = False, most: int = MOST_NUMBER) -> list[float]:
    """Each number once. Raises ValidationError."""
    values: dict[float, None] = {}
    for part in parts(text):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not 0 <= value <= most or (whole and not value.is_integer()):
            kind = _("a whole number") if whole else _("a number")
            text = _("{part} is not {kind} from 0 to {most}.")
            text = text.format(part=part, kind=kind, most=f"{most:,}")
            raise forms.ValidationError(text, code="not_a_number")
        values[value] = None
    return list(values)


def probabilities(text: str) -> list[str]:
    """As in names of users; an effect size is `d=` and a number. Raises ValidationError."""
    names: dict[str, None] = {}
    for part in parts(text):
        effect = part.removeprefix("d=")
        if effect == part:
            [value] = numbers(part, most=1)
            names[f"{value:g}"] = None
        else:
            [value] = numbers(effect, most=MOST_EFFECT)
            names[f"d={value:g}"] = None
    return list(names)


def parts(text: str) -> list[str]:
    return [part for one in text.split(",") if (part := one.strip())]


def validate_numbers(text: str, *, whole: bool = False, most: int = MOST_NUMBER) -> None:
    numbers(text, whole=whole, most=most)


def validate_probabilities(text: str) -> None:
    probabilities(text)


class RunForm(PlainForm):
    recommenders = forms.MultipleChoiceField(
        label=gettext_lazy("Recommenders"),
        widget=forms.CheckboxSelectMultiple,
        initial=[RANDOM, EMBEDDING],
    )
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Users beside SimBase, who keeps to the target"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("They are content with an alternative from the first turn on."),
        choices=[
            (TOL, gettext_lazy("MetaSimTol: asks for an alternative once its tolerance is spent")),
            (PROB, gettext_lazy("MetaSimProb: does so only with probability P, after a loss")),
        ],
        initial=[TOL, PROB],
    )
    tolerances = forms.CharField(
        label=gettext_lazy("Tolerance, in turns"),
        initial="3",
        required=False,
        max_length=200,
        help_text=NUMBERS_HELP,
        validators=[partial(validate_numbers, whole=True, most=MOST_TOLERANCE)],
    )
    p_switch = forms.CharField(
        label=gettext_lazy("P(switch)"),
        initial="0.75",
        required=False,
        max_length=200,
        validators=[validate_probabilities],
        help_text=gettext_lazy(
            "Of MetaSimProb, numbers with commas between, or effect sizes as in d=0.62. Fix it "
            "before you look: the best of several is above their mean even if all are equal."
        ),
    )
    n_turns = forms.IntegerField(label=gettext_lazy("Turns"), initial=10, min_value=1, max_value=50)
    seeds = forms.CharField(
        label=gettext_lazy("Seeds"),
        initial="0",
        max_length=400,
        help_text=NUMBERS_HELP,
        validators=[partial(validate_numbers, whole=True)],
    )
    measures = forms.MultipleChoiceField(
        label=gettext_lazy("Measures"),
        choices=[(name, name) for name in COMMON],
        widget=forms.CheckboxSelectMultiple,
        initial=list(DEFAULT_MEASURES),
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("Disputed choices as in"),
        choices=[
            ("paper", gettext_lazy("the article: turns count from 1, a loss makes users switch")),
            ("released", gettext_lazy("its program: turns count from 0, a gain makes them switch")),
        ],
    )
    target_among = forms.BooleanField(
        label=gettext_lazy("The target is among its alternatives, as in the article"),
        required=False,
        initial=True,
        help_text=gettext_lazy("A user may switch back to the target if it is the nearest."),
    )
    sticky = forms.BooleanField(
        label=gettext_lazy("Who switched stays with that alternative"), required=False
    )
    leave_hazard = forms.FloatField(
        label=gettext_lazy("Probability of leaving after each turn"),
        initial=0,
        min_value=0,
        max_value=1,
        help_text=gettext_lazy("The published users never leave; people do."),
    )
    qrels = forms.ChoiceField(
        label=gettext_lazy("What is relevant"),
        choices=[
            (
                "accepted",
                gettext_lazy(
                    "as in the article: the target for SimBase, the target and its alternatives "
                    "for other users"
                ),
            ),
            ("target and alternatives", gettext_lazy("the target and its alternatives")),
            ("target", gettext_lazy("the target alone")),
            ("alternatives", gettext_lazy("the alternatives alone")),
        ],
    )
    relevant_from = forms.IntegerField(
        label=gettext_lazy("An alternative is accepted from grade"),
        initial=1,
        min_value=1,
        max_value=100,
    )
    carry = forms.ChoiceField(
        label=gettext_lazy("After a dialogue has ended"),
        choices=[
            ("one", gettext_lazy("every measure is 1, as in the article")),
            ("same list", gettext_lazy("its last list counts on")),
            ("found alone", gettext_lazy("a list of the item found alone counts")),
            ("none", gettext_lazy("the lists of the turns that would have followed count")),
        ],
    )
    no_repeats = forms.BooleanField(
        label=gettext_lazy("No item is shown twice in a dialogue"), required=False
    )

    MORE = ("mode", "leave_hazard", "qrels", "relevant_from", "carry")

    def __init__(self, recommenders: Sequence[tuple[str, str]], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usual = [
            (RANDOM, _("random order, to compare with")),
            (EMBEDDING, _("embedding: a belief moved by critiques, without training")),
        ]
        offer_choices(self, recommenders=[*usual, *recommenders])
        self.plan: Plan | None = None

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for kind, name in NEEDED:
            if (kind in data.get("kinds", ()) and name in data) and not parts(data[name]):
                text = _("{user} needs a number here, or take it from the users.")
                self.add_error(name, text.format(user=NAMES[kind]))
        if self.errors:
            return data
        try:
            self.plan = plan_of(self.rules)  # says which cells of the design cannot be
        except ExperimentUnfit as refused:
            self.add_error(None, ValidationError(str(refused), code=refused.code))
        return data

    @property
    def controls(self) -> list[str]:
        return controls(self.plan) if self.plan else []

    @property
    def rules(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            "users": self.users(),
            "mode": data["mode"],
            "recommenders": data["recommenders"],
            "n_turns": data["n_turns"],
            "seeds": [int(each) for each in numbers(data["seeds"], whole=True)],
            "measures": data["measures"],
            "qrels": data["qrels"],
            "carry": data["carry"],
            "repeats": not data["no_repeats"],
            "relevant_from": data["relevant_from"],
        }

    def users(self) -> list[str]:
        data = self.cleaned_data
        own = f",leave_hazard={data['leave_hazard']:g}" if data["leave_hazard"] else ""
        tolerances = [int(each) for each in numbers(data["tolerances"], whole=True)]
        users = [f"base{own}"]
        own += ",sticky=yes" if data["sticky"] else ""
        own += "" if data["target_among"] else ",target_among=no"
        if TOL in data["kinds"]:
            users += [f"tol:{tolerance}{own}" for tolerance in tolerances]
        if PROB in data["kinds"]:
            values = probabilities(data["p_switch"])
            users += [f"prob:{tolerance}:{p}{own}" for tolerance in tolerances for p in values]
        return users


class ExperimentForm(RunForm):
    name = forms.CharField(
        label=gettext_lazy("Name of the experiment"),
        max_length=NAME_LENGTH,
        validators=[require_visible],
        initial=gettext_lazy("Simulated users"),
    )
    judgments = forms.ChoiceField(
        label=gettext_lazy("Judgments"),
        help_text=gettext_lazy("Topics are targets; what is relevant is what users may accept."),
    )
    catalogue = forms.ChoiceField(
        label=gettext_lazy("Catalogue"),
        help_text=gettext_lazy("What is recommended. It must have every judged item."),
    )
    n_items = forms.IntegerField(
        label=gettext_lazy("Drawn shoes"), initial=5000, min_value=2, max_value=MOST_DRAWN
    )
    catalogue_seed = forms.IntegerField(
        label=gettext_lazy("Seed of what is drawn"), initial=0, min_value=0, max_value=2**31 - 1
    )
    file = forms.FileField(
        label=gettext_lazy("File of a catalogue"),
        required=False,
        help_text=CATALOGUE_FILES,
    )

    def __init__(
        self,
        sources: dict[str, Source],
        catalogues: Sequence[tuple[str, str]],
        recommenders: Sequence[tuple[str, str]],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(recommenders, *args, **kwargs)
        self.sources = sources
        judgments = [
            # With the study's name, which a closed menu does not show as a group's.
            (group, [(source.key, source.made_of) for source in some])
            for group, some in groupby(sources.values(), key=lambda source: source.group)
        ]
        offer_choices(self, judgments=judgments, catalogue=catalogues)

    @property
    def source(self) -> Source:
        return self.sources[self.cleaned_data["judgments"]]

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("catalogue") == SENT and not data.get("file") and "file" not in self.errors:
            self.add_error("file", _("Choose the file of the catalogue."))
        return data


def users_again(rules: Mapping[str, Any]) -> list[str]:
    """Users for another run with these settings: those of the stored run, except for names that a
    program requested and that the fields cannot express."""
    form = RunForm((), initial_of(rules))
    form.is_valid()
    return form.users()


def are_same_users(names: Sequence[str], others: Sequence[str], *, mode: Mode) -> bool:
    return {named_user(name, mode=mode) for name in names} == {
        named_user(name, mode=mode) for name in others
    }


def initial_of(rules: Mapping[str, Any], *, form: int = FORM) -> dict[str, Any]:
    specs = [name.split(",")[0].split(":") for name in rules["users"]]
    choices = dict(part.split("=") for name in rules["users"] for part in name.split(",")[1:])
    # The article's users had their target among the alternatives from form 4 on.
    usual = "no" if form < 4 and rules["mode"] == "paper" else "yes"
    of_others = [spec for spec in specs if len(spec) > 1]
    return {
        "recommenders": rules["recommenders"],
        "kinds": [kind for kind in (TOL, PROB) if any(spec[0] == kind for spec in specs)],
        "tolerances": ", ".join(dict.fromkeys(spec[1] for spec in of_others)) or "3",
        "p_switch": ", ".join(dict.fromkeys(spec[2] for spec in specs if len(spec) > 2)) or "0.75",
        "n_turns": rules["n_turns"],
        "seeds": ", ".join(map(str, rules["seeds"])),
        "measures": rules["measures"],
        "mode": rules["mode"],
        "sticky": choices.get("sticky") == "yes",
        "target_among": choices.get("target_among", usual) == "yes",
        "leave_hazard": float(choices.get("leave_hazard", 0)),
        "qrels": rules["qrels"],
        "relevant_from": rules["relevant_from"],
        "carry": rules["carry"],
        "no_repeats": not rules["repeats"],
    }


MOST_OFFERED = 300


def sources_of(teams: list[Team]) -> dict[str, Source]:
    sources = relevance_sources().list_sources(teams)
    return {source.key: source for source in islice(sources, MOST_OFFERED)}


def first_key(sources: dict[str, Source], *, study: str, collection: str) -> str:
    for key, source in sources.items():
        if study and source.study is not None and source.study.slug == study:
            return key
        if collection and source.collection == collection:
            return key
    return next(iter(sources), "")
