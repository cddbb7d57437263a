from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _, gettext_lazy

from annotation.models import Study
from annotation.submission_imports import pseudonym
from csv_cells import to_cell
from error_codes import CodedText
from hits.invitation_links import LONGEST_NAME, MOST_PEOPLE, link_jobs
from hits.models import Batch, InvitedPerson, LinkStudy
from hits.recruited_batches import judgments_wanted
from hits.recruiter_api import hits_per_person
from work.models import Job


class NamesForm(forms.Form):
    names = forms.CharField(
        label=gettext_lazy("Names, codes or addresses, one per line"),
        help_text=gettext_lazy("Each line gets a link. Exports have pseudonyms, not these names."),
        widget=forms.Textarea({"rows": 4}),
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, label_suffix="")

    def clean_names(self) -> list[str]:
        lines = (" ".join(line.split()) for line in self.cleaned_data["names"].splitlines())
        names = list(dict.fromkeys(line for line in lines if line))
        if long := next((name for name in names if len(name) > LONGEST_NAME), None):
            text = _("“%(name)s…” has more than %(n)s characters.")
            raise ValidationError(text % {"name": long[:30], "n": LONGEST_NAME}, code="long_name")
        if len(names) > MOST_PEOPLE:
            text = _("At most %(n)s names.") % {"n": f"{MOST_PEOPLE:,}"}
            raise ValidationError(text, code="too_many_names")
        return names


@dataclass(frozen=True)
class PersonRow:
    person: InvitedPerson
    status: CodedText
    annotator: str

    @property
    def has_link(self) -> bool:
        return bool(self.person.link) and self.status.code not in ("revoked", "revoking")

    @property
    def may_revoke(self) -> bool:
        return bool(self.person.number) and self.person.revoked_at is None


@dataclass
class LinksView:
    batch: Batch
    names_form: NamesForm | None = None
    problem: CodedText | str = ""

    @cached_property
    def study(self) -> LinkStudy | None:
        return LinkStudy.objects.filter(batch=self.batch).first()

    @property
    def form(self) -> NamesForm:
        return self.names_form or NamesForm()

    @property
    def refused_form(self) -> NamesForm | None:
        return self.names_form if self.names_form and self.names_form.errors else None

    @cached_property
    def job(self) -> Job | None:
        return link_jobs(self.batch).first()

    @property
    def is_under_way(self) -> bool:
        return bool(self.job and self.job.is_unfinished)

    @cached_property
    def rows(self) -> list[PersonRow]:
        return person_rows(self.batch)

    @property
    def has_links(self) -> bool:
        return bool(self.study and (self.study.shared_link or self.rows))

    @property
    def n_came(self) -> int:
        return sum(bool(row.person.worker_id) for row in self.rows)

    @property
    def n_done(self) -> int:
        return sum(row.person.n_done for row in self.rows)

    @cached_property
    def n_wanted(self) -> int:
        return judgments_wanted(self.batch)

    @cached_property
    def n_each(self) -> int:
        return hits_per_person(self.batch)

    @property
    def seconds(self) -> int:
        return int(self.batch.assignment_duration_seconds) * self.n_each


def person_rows(batch: Batch) -> list[PersonRow]:
    return [
        PersonRow(person, _status(person), _annotator(batch, batch.study, person))
        for person in InvitedPerson.objects.filter(study__batch=batch).order_by("pk")
    ]


def _annotator(batch: Batch, study: Study, person: InvitedPerson) -> str:
    if not person.worker_id:
        return ""
    return pseudonym(study, f"{batch.connection.marketplace}:{person.worker_id}")


def _status(person: InvitedPerson) -> CodedText:
    if person.is_revoked:
        return CodedText(_("Revoked"), "revoked")
    if person.revoked_at is not None:
        return CodedText(_("Being revoked"), "revoking")
    if not person.number and not person.worker_id:
        return CodedText(_("Being created"), "unsent")
    if not person.worker_id:
        return CodedText(_("Not opened"), "unopened")
    if person.outcome == "completed" or person.state == "approved":
        return CodedText(_("Finished"), "finished")
    if person.outcome == "no_more_items":
        return CodedText(_("No HIT was left"), "no_hit_left")
    if person.outcome == "no_consent":
        return CodedText(_("Stopped"), "stopped")
    labels = {
        "started": _("At work"),
        "timed_out": _("Ran out of time"),
        "rejected": _("Rejected"),
        "returned": _("Stopped"),
    }
    return CodedText(labels.get(person.state, _("Ended")), person.state)


def links_table(batch: Batch) -> Iterator[tuple[str, ...]]:
    yield (
        *("name", "link", "status", "hits_done", "hits_reserved", "hits_at_most"),
        *("arrived_at", "worker_id", "annotator"),
    )
    n_each = hits_per_person(batch)
    for row in person_rows(batch):
        one = row.person
        yield (
            *(to_cell(one.name), one.link if row.has_link else "", row.status.code),
            *(str(one.n_done), str(one.n_hits), str(n_each)),
            one.arrived_at.isoformat(timespec="seconds") if one.arrived_at else "",
            *(one.worker_id, row.annotator),
        )
