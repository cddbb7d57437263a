import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Question, Study
from annotation.pages.stages import stage_facts
from console.forms import UsdField
from hits.models import Batch, Connection
from hits.page_rendering import default_texts
from hits.recruiter_api import MOST_HITS_PER_PERSON
from hits.requirements import (
    countries_errors,
    languages_errors,
    listed_workers,
    protocol_terms,
    requirements,
    who_may_work,
    worker_id_errors,
)
from hits.selections import (
    OF_ROUND,
    REST,
    item_list,
    items_of_round,
    least_sure,
    of_round,
    sample,
)
from hits.wages import StudyTexts
from metrics.models import ScoringRun

MINUTE, DAY = 60, 24 * 3600
MOST_DAYS = 365
MARKETPLACE, RECRUITER, LINKS = "", "recruiter", "links"
SUGGESTED_HITS_PER_PERSON = 10
SAMPLE, UNSURE, THE_REST, LISTED = "sample", "unsure", "rest", "listed"
# Fields in the folds of the form: a fault in one of them opens its fold.
FOLDS = {
    "who": (
        *("countries", "languages", "min_approval", "min_approved", "needs_masters"),
        *("max_per_worker", "excluded_rounds", "excluded_workers"),
    ),
    "terms": ("title", "description", "keywords", "minutes", "approval_days"),
    "rounds": ("round", "of_round", "seed", "wave_size", "budget_usd"),
}


def _number(label: Any, low: int, high: int, *, help_text: Any = "", required: bool = True) -> Any:
    return forms.IntegerField(
        label=label, min_value=low, max_value=high, help_text=help_text, required=required
    )


class LaunchForm(forms.Form):
    how = forms.ChoiceField(
        choices=[(SAMPLE, ""), (UNSURE, ""), (THE_REST, ""), (LISTED, "")],
        widget=forms.RadioSelect,
        required=False,
    )
    n_items = _number(gettext_lazy("Items, drawn at random"), 1, 1_000_000)
    n_unsure = _number(gettext_lazy("Items in it"), 1, 1_000_000, required=False)
    keys = forms.CharField(
        label=gettext_lazy("Items, a key a line"),
        required=False,
        widget=forms.Textarea({"rows": 3}),
    )
    reward_usd = UsdField(
        label=gettext_lazy("Reward per HIT (USD)"), max_value=Decimal("999999.99")
    )
    source = forms.ChoiceField(
        choices=[
            (MARKETPLACE, gettext_lazy("A marketplace")),
            (RECRUITER, gettext_lazy("A recruiter, such as Prolific")),
            (LINKS, gettext_lazy("Invitation links")),
        ],
        required=False,
    )
    hits_per_person = _number(
        gettext_lazy("HITs per person"),
        1,
        MOST_HITS_PER_PERSON,
        required=False,
        help_text=gettext_lazy("The most that one invited person can do."),
    )
    max_assignments = _number(gettext_lazy("Annotators per item"), 1, 1_000_000_000)
    connection = forms.ModelChoiceField(
        Connection.objects.none(), label=gettext_lazy("Marketplace"), empty_label=None
    )
    title = forms.CharField(label=gettext_lazy("Title"), max_length=128)
    description = forms.CharField(
        label=gettext_lazy("Description"), max_length=2000, widget=forms.Textarea({"rows": 2})
    )
    keywords = forms.CharField(
        label=gettext_lazy("Keywords, with commas"), max_length=1000, required=False
    )
    minutes = _number(gettext_lazy("Minutes to finish a HIT"), 1, MOST_DAYS * 24 * 60)
    days = _number(gettext_lazy("Available for (days)"), 1, MOST_DAYS)
    approval_days = _number(
        gettext_lazy("Days until work is approved by itself"),
        0,
        30,
        help_text=gettext_lazy("0 to 30."),
    )
    round = _number(
        gettext_lazy("Round"), 1, 32_767, help_text=gettext_lazy("A second one asks again.")
    )
    of_round = _number(
        gettext_lazy("Only items of round"),
        1,
        32_767,
        required=False,
        help_text=gettext_lazy("Those that workers were asked about in it."),
    )
    seed = _number(
        gettext_lazy("Seed that items are drawn by"),
        0,
        2**31 - 1,
        help_text=gettext_lazy("The same number draws the same items again."),
    )
    wave_size = forms.TypedChoiceField(
        label=gettext_lazy("Assignments of an item"),
        coerce=int,
        empty_value=None,
        required=False,
        choices=[("", gettext_lazy("all at once")), ("9", gettext_lazy("in waves of nine"))],
        help_text=gettext_lazy(
            "A wave begins when the one before is in, with other workers. "
            "Mechanical Turk's higher fee for ten at once is then not due."
        ),
    )
    needs_masters = forms.BooleanField(
        label=gettext_lazy("Masters only"),
        required=False,
        help_text=gettext_lazy(
            "Workers whom Mechanical Turk itself has chosen for good work, for a fee of 5 % more."
        ),
    )
    countries = forms.CharField(
        label=gettext_lazy("Countries"),
        required=False,
        help_text=gettext_lazy("Codes such as DE, AT, CH."),
    )
    languages = forms.CharField(
        label=gettext_lazy("Languages"),
        required=False,
        help_text=gettext_lazy("Codes such as de, en; workers who know all of them."),
    )
    min_approval = _number(
        gettext_lazy("Least approval rate, %"),
        0,
        100,
        required=False,
        help_text=gettext_lazy(
            "Of all that a worker has handed in at the marketplace, such as 95."
        ),
    )
    min_approved = _number(
        gettext_lazy("Least number of HITs approved"), 0, 10_000_000, required=False
    )
    max_per_worker = _number(gettext_lazy("Most HITs for one worker"), 1, 1_000_000, required=False)
    excluded_rounds = forms.CharField(
        label=gettext_lazy("Not for workers of rounds"),
        required=False,
        help_text=gettext_lazy("Such as 1, 2."),
    )
    excluded_workers = forms.CharField(
        label=gettext_lazy("Not for these workers"),
        required=False,
        help_text=gettext_lazy("The marketplace's name for a worker, the WorkerId, one a line."),
        widget=forms.Textarea({"rows": 2}),
    )
    budget_usd = UsdField(
        label=gettext_lazy("Most that this launch may cost, $"), required=False, max_digits=10
    )
    part = forms.IntegerField(min_value=1, max_value=32_767, widget=forms.HiddenInput)

    def __init__(
        self, study: Study, connections: Sequence[Connection], data: Mapping[str, Any]
    ) -> None:
        self.study = study
        defaults = {"judge": self.judges[:1], "about": [(q.pk, q.name) for q in self.questions[:1]]}
        named = {name: rows[0][0] for name, rows in defaults.items() if rows}
        paid_there = {"reward_usd": "0.00"} if data.get("source") else {}
        super().__init__(named | dict(data) | paid_there, label_suffix="")
        by_key = {connection.pk: connection for connection in connections}
        self.connections = by_key
        self.fields["connection"] = forms.TypedChoiceField(
            label=gettext_lazy("Marketplace"),
            coerce=lambda key: by_key[int(key)],
            choices=[(connection.pk, str(connection)) for connection in connections],
        )

        self.fields["judge"] = forms.TypedChoiceField(
            label=gettext_lazy("Scores that are expected to err"),
            coerce=int,
            required=False,
            choices=self.judges,
        )
        self.fields["about"] = forms.TypedChoiceField(
            label=gettext_lazy("Question"),
            coerce=int,
            required=False,
            choices=[(one.pk, one.name) for one in self.questions],
        )

    @cached_property
    def judges(self) -> list[tuple[int, str]]:
        if not stage_facts(self.study)["has_scores"]:
            return []
        rows = list(
            ScoringRun.objects.of(self.study)
            .filter(is_primary=True)
            .values_list("pk", "metric", "signature")
        )
        counts = Counter(metric for _pk, metric, _signature in rows)
        return [
            (pk, metric if counts[metric] == 1 else f"{metric} {signature}")
            for pk, metric, signature in rows
        ]

    @cached_property
    def questions(self) -> list[Question]:
        return [one for one in self.study.questions.all() if one.level != Question.Level.NOMINAL]

    def clean_keys(self) -> list[str]:
        return [line.strip() for line in self.cleaned_data["keys"].splitlines() if line.strip()]

    def clean_countries(self) -> list[str]:
        codes = _words(self.cleaned_data["countries"])
        if errors := countries_errors(codes):
            raise ValidationError(errors)
        return codes

    def clean_languages(self) -> list[str]:
        codes = _words(self.cleaned_data["languages"])
        if errors := languages_errors(codes):
            raise ValidationError(errors)
        return codes

    def clean_excluded_rounds(self) -> list[int]:
        words = _words(self.cleaned_data["excluded_rounds"])
        # No study has rounds of more digits, which int() would take long to read.
        wrong = [word for word in words if not re.fullmatch("0{0,3}[1-9][0-9]{0,4}", word)]
        if wrong:
            raise ValidationError(_("“%(word)s” is not a round.") % {"word": wrong[0]})
        return [int(word) for word in words]

    def clean_excluded_workers(self) -> list[str]:
        ids = _words(self.cleaned_data["excluded_workers"])
        if errors := worker_id_errors(ids):
            raise ValidationError(errors)
        return ids

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if data.get("how") == LISTED and not data.get("keys"):
            self.add_error("keys", _("Name at least one item."))
        for name in ("n_unsure", "judge", "about"):
            if data.get("how") == UNSURE and name not in self.errors and not data.get(name):
                self.add_error(name, self.fields[name].error_messages["required"])
        name = "hits_per_person"
        if data.get("source") == LINKS and name not in self.errors and not data.get(name):
            self.add_error(
                name, ValidationError(self.fields[name].error_messages["required"], code="required")
            )
        data["is_recruited"] = bool(data.get("source"))
        data["is_invited"] = data.get("source") == LINKS
        earlier, round_ = data.get("of_round"), data.get("round")
        if earlier and round_ and earlier >= round_:
            self.add_error("of_round", _("Name a round before this one."))
        return data

    @property
    def selection(self) -> dict[str, Any]:
        earlier = self.cleaned_data["of_round"]
        return of_round(self._drawn, earlier) if earlier else self._drawn

    @property
    def _drawn(self) -> dict[str, Any]:
        data = self.cleaned_data
        # Where nothing is chosen yet, what is looked at is all that could be.
        if data["how"] in ("", THE_REST):
            return REST
        if data["how"] == LISTED:
            return item_list(data["keys"])
        if data["how"] == UNSURE:
            return least_sure(
                data["n_unsure"], data["seed"], run=data["judge"], question=data["about"]
            )
        return sample(data["n_items"], data["seed"])

    @property
    def draft(self) -> Batch:
        data = self.cleaned_data
        rows = requirements(
            countries=data["countries"],
            languages=data["languages"],
            min_approval_percent=data["min_approval"],
            min_approved=data["min_approved"],
        )
        same = ("title", "description", "keywords", "reward_usd", "max_assignments", "round")
        # Whom they take, recruiters ask of participants; what is here is known of workers.
        is_recruited, is_invited = data["is_recruited"], data["is_invited"]
        return Batch(
            study=self.study,
            connection=data["connection"],
            selection=self.selection,
            assignment_duration_seconds=data["minutes"] * MINUTE,
            lifetime_seconds=data["days"] * DAY,
            auto_approval_delay_seconds=data["approval_days"] * DAY,
            is_recruited=is_recruited,
            is_invited=is_invited,
            requirements=[] if is_recruited else rows,
            needs_masters=data["needs_masters"] and not is_recruited,
            max_per_worker=data["hits_per_person" if is_invited else "max_per_worker"],
            wave_size=None if is_recruited else data["wave_size"],
            excluded_rounds=data["excluded_rounds"],
            **{name: data[name] for name in same},
        )


def _words(text: str) -> list[str]:
    return list(dict.fromkeys(re.split(r"[\s,;]+", text.strip()) if text.strip() else []))


def pilot_size(n_items: int) -> int:
    return max(1, min(20, max(3, n_items // 10), n_items // 2))


def initial_terms(
    texts: StudyTexts, last: Batch | None, n_left: int, reward_usd: Decimal
) -> dict[str, Any]:
    # Of the last batch's terms nothing is chosen: a second press would publish the rest unread.
    content: dict[str, Any] = {
        "how": "" if last else SAMPLE,
        "n_items": pilot_size(n_left),
        "n_unsure": pilot_size(n_left),
        "reward_usd": reward_usd,
        "source": MARKETPLACE,
        **default_texts(texts),
        "days": 7,
        "approval_days": 3,
        "round": 1,
        "seed": 7,
    }
    return content | _terms_of_protocol(texts.study) | (_terms_of(last) if last else {})


def _terms_of_protocol(study: Study) -> dict[str, Any]:
    terms = protocol_terms(study)
    return {
        "minutes": terms.minutes,
        "max_assignments": terms.max_assignments,
        "countries": ", ".join(terms.countries),
        "languages": ", ".join(terms.languages),
        "min_approval": terms.min_approval_percent,
        "min_approved": terms.min_approved,
        "max_per_worker": terms.max_per_worker,
        "hits_per_person": _hits_per_person(terms.max_per_worker),
    }


def _hits_per_person(max_per_worker: int | None) -> int:
    return min(max_per_worker or SUGGESTED_HITS_PER_PERSON, MOST_HITS_PER_PERSON)


def further_round(batches: Iterable[Batch]) -> dict[str, Any] | None:
    """What follows a study's batches (counted by `progressing`): round `number`, in which other
    annotators judge `n_items` of the first round's `n_asked` items, once that has answers."""
    ordered = sorted(batches, key=lambda batch: (batch.round, -batch.pk))
    first = [batch for batch in ordered if batch.round == ordered[0].round]
    if not any(batch.n_collected for batch in first):
        return None
    n_asked = items_of_round(first[0].study_id, first[0].round).count()
    return {
        "batch": first[0],
        "number": ordered[-1].round + 1,
        "n_items": _second_round_size(first[0], n_asked),
        "n_asked": n_asked,
    }


def _second_round_size(batch: Batch, n_items: int) -> int:
    share = batch.document.completion.second_round_share
    return max(1, round(share * n_items)) if share else pilot_size(n_items)


def second_round(batch: Batch, batches: Sequence[Batch], n_items: int) -> dict[str, Any]:
    rounds = sorted({each.round for each in batches if each.study_id == batch.study_id})
    return _terms_of(batch) | {
        "how": SAMPLE,
        "n_items": _second_round_size(batch, n_items),
        "seed": rounds[-1] + 1,
        "round": rounds[-1] + 1,
        "of_round": batch.round,
        "excluded_rounds": ", ".join(map(str, rounds)),
    }


def purchase(n_items: int, n_left: int, how: str) -> dict[str, Any]:
    n_drawn = min(n_items or pilot_size(n_left), n_left) if n_items or how else 0
    return {"how": how or SAMPLE, "n_items": n_drawn, "n_unsure": n_drawn} if n_drawn else {}


def _terms_of(batch: Batch) -> dict[str, Any]:
    names = (
        *("title", "description", "keywords", "reward_usd"),
        *("max_assignments", "round"),
    )
    who = who_may_work(batch)
    return {
        **{name: getattr(batch, name) for name in names},
        "source": LINKS if batch.is_invited else RECRUITER if batch.is_recruited else MARKETPLACE,
        "hits_per_person": _hits_per_person(batch.max_per_worker),
        "of_round": batch.selection.get(OF_ROUND) or "",
        "excluded_rounds": ", ".join(map(str, batch.excluded_rounds)),
        "countries": ", ".join(who.countries),
        "languages": ", ".join(who.languages),
        "min_approval": who.min_approval_percent,
        "min_approved": who.min_approved,
        "excluded_workers": "\n".join(listed_workers(batch)),
        "connection": batch.connection_id,
        "minutes": max(1, batch.assignment_duration_seconds // MINUTE),
        "days": max(1, batch.lifetime_seconds // DAY),
        "approval_days": batch.auto_approval_delay_seconds // DAY,
        "wave_size": batch.wave_size or "",
        "needs_masters": batch.needs_masters,
        "max_per_worker": batch.max_per_worker or "",
    }
