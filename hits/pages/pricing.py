from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import prefetch_related_objects
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from annotation.models import Study
from annotation.protocols.practice import n_attempts
from annotation.protocols.versions import current_document
from annotation.study_facts import PUBLISH, jobs_of
from hits.costs import CENT, Estimate, Room, price_launch, rooms_of
from hits.models import Batch, Connection, Recruiter
from hits.pages.findings import (
    agreement_findings,
    elsewhere_findings,
    form_findings,
    own_budget_findings,
    selection_findings,
    workers_text,
)
from hits.pages.sections import protocol_findings, summarize_checks
from hits.pages.terms import (
    FOLDS,
    LISTED,
    SAMPLE,
    THE_REST,
    UNSURE,
    LaunchForm,
    further_round,
    initial_terms,
    purchase,
    second_round,
)
from hits.preflight import (
    Finding,
    Level,
    budget_findings,
    connection_findings,
    fault,
    item_findings,
    language_findings,
    order_findings,
    page_findings,
    pay_findings,
    practice_findings,
    qualification_test_findings,
    recruiter_findings,
    term_findings,
    version_findings,
    wave_saving_usd,
)
from hits.progress import is_offered_here
from hits.readiness import Funds, PageCheck, funds_of, page_check, request_check, texts_fingerprint
from hits.recruited_batches import batches_without_study
from hits.selections import OF_ROUND, items_of_round, items_without_hit
from hits.wages import (
    SUGGESTED_HOURLY_USD,
    Duration,
    StudyTexts,
    Wage,
    duration_of,
    duration_words,
    n_implausible,
    practice_duration,
    reward_for,
    study_texts,
    wage_of,
)
from work.models import Job


@dataclass(frozen=True)
class Choice:
    value: str
    label: str
    n_items: int
    cost: Estimate | None


@dataclass(frozen=True)
class WageMark:
    """A label at a place of the scale of the pay; `x` and `room`, which it needs on either side,
    are in percent of the scale's length."""

    name: str
    text: str
    x: int
    room: int = 15

    @property
    def anchor(self) -> str:
        if self.x < self.room:
            return "start"
        return "end" if self.x > 100 - self.room else "middle"


WIDTH_OF_MARK = 30
# What is required of workers, and not asked of participants.
OF_WORKERS = (
    "countries",
    "languages",
    "min_approval",
    "min_approved",
    "needs_masters",
    "wave_size",
)

PRICE_CHANGED = "price_changed"


@dataclass
class LaunchView:
    """The page of one study for one person; `data` is what its form holds, if anything yet. `again`
    is a batch whose items are to be judged again; `n_to_buy` is how many more items would separate
    systems, and `how_to_buy` how they are drawn. With `is_elsewhere` the form is there though
    nothing is left. A press is `is_outdated` if the offer has changed since its page was opened;
    the page then shown is `is_refused`."""

    study: Study
    person: User
    data: Mapping[str, Any] | None = None
    is_final: bool = False
    is_refused: bool = False
    again: Batch | None = None
    n_to_buy: int = 0
    how_to_buy: str = ""
    is_elsewhere: bool = False
    is_outdated: bool = False
    counts: dict[tuple[int, int, int | None], int] = field(default_factory=dict)
    extra: list[Finding] = field(default_factory=list)

    @cached_property
    def connections(self) -> list[Connection]:
        if self.study.team is None:
            return []
        return list(Connection.objects.of(self.study.team).usable())

    @cached_property
    def batches(self) -> list[Batch]:
        return list(
            Batch.objects.of(self.study).select_related("connection").progressing().order_by("pk")
        )

    @cached_property
    def recruiters(self) -> set[int]:
        rows = Recruiter.objects.of(self.study.team).usable() if self.study.team else None
        return set() if rows is None else set(rows.values_list("connection", flat=True))

    @property
    def is_offered_here(self) -> bool:
        return is_offered_here(self.batches)

    @cached_property
    def undrafted(self) -> list[Batch]:
        return batches_without_study(self.batches)

    @property
    def is_answered(self) -> bool:
        return len(self.undrafted) < len(self.batches)

    @cached_property
    def duration(self) -> Duration:
        return duration_of(self.study, self.texts)

    @cached_property
    def texts(self) -> StudyTexts:
        return study_texts(self.study)

    @cached_property
    def form(self) -> LaunchForm:
        # The form, its prices and its checks each ask what workers will see.
        prefetch_related_objects([self.study], "protocols", "questions")
        usable = {connection.pk for connection in self.connections}
        own = [batch for batch in self.batches if batch.connection_id in usable]
        if self.data is None and self.again is not None:
            n_items = items_of_round(self.study.pk, self.again.round).count()
            content = {"connection": self.connections[0].pk}
            content |= second_round(self.again, self.batches, n_items)
        elif self.data is None:
            reward = max(reward_for(self.floor_usd or SUGGESTED_HOURLY_USD, self.duration), CENT)
            first = self.connections[0].pk
            last = self._batch_to_follow(own)
            n_left = self._n_left_beside(last) if last else self._n_left(1, first, {})
            content = {"connection": first} | initial_terms(self.texts, last, n_left, reward)
            content |= purchase(self.n_to_buy, n_left, self.how_to_buy)
        else:
            content = dict(self.data)
            if enough := content.get("enough_usd"):
                content["reward_usd"] = enough
        if not self.is_final:
            content["part"] = self.next_part(content)
        return LaunchForm(self.study, self.connections, content)

    def _batch_to_follow(self, batches: Sequence[Batch]) -> Batch | None:
        by_round = sorted(batches, key=lambda each: (each.round, -each.pk))
        last = batches[-1] if batches else None
        return next((each for each in by_round if self._n_left_beside(each)), last)

    def _n_left_beside(self, batch: Batch) -> int:
        return self._n_left(batch.round, batch.connection_id, batch.selection)

    def _n_left(self, round_: int, connection_id: int, selection: Mapping[str, Any]) -> int:
        key = (round_, connection_id, selection.get(OF_ROUND))
        if key not in self.counts:
            connection = next(one for one in self.connections if one.pk == connection_id)
            self.counts[key] = items_without_hit(
                Batch(
                    study=self.study, round=round_, connection=connection, selection=dict(selection)
                )
            ).count()
        return self.counts[key]

    def next_part(self, content: Mapping[str, Any]) -> int:
        same = [
            batch.part
            for batch in self.batches
            if str(batch.connection_id) == str(content["connection"])
            and str(batch.round) == str(content.get("round"))
        ]
        return max(same, default=0) + 1

    @cached_property
    def draft(self) -> Batch | None:
        return self.form.draft if self.form.is_valid() else None

    @cached_property
    def n_left(self) -> int:
        draft = self.draft
        return self._n_left(draft.round, draft.connection_id, draft.selection) if draft else 0

    @cached_property
    def choices(self) -> list[Choice]:
        data, n_left = (self.form.cleaned_data if self.draft else {}), self.n_left
        is_first = not self.batches
        sample = _("A pilot, drawn at random") if is_first else _("A sample, drawn at random")
        rows = [(SAMPLE, sample, min(data.get("n_items", 0), n_left))]
        if self.form.judges and self.form.questions:
            rows.append(
                (
                    UNSURE,
                    _("A sample, where the judge is least sure"),
                    min(data.get("n_unsure") or 0, n_left),
                )
            )
        rows.append((THE_REST, self._rest_label(), n_left))
        rows.append((LISTED, _("A choice of items"), len(data.get("keys") or [])))
        return [self._priced_choice(*row) for row in rows]

    def _priced_choice(self, value: str, label: str, n: int) -> Choice:
        return Choice(
            value, label, n, price_launch(self.draft, n_items=n) if self.draft and n else None
        )

    def _rest_label(self) -> str:
        n = self.n_left
        if self.draft is None:
            return _("All items without a HIT")
        if not n:
            return _("No other item is left")
        if self.next_part(self.form.data) > 1:
            return ngettext("The other item", "The other %(n)s items", n) % {"n": f"{n:,}"}
        return ngettext("The one item", "All %(n)s items", n) % {"n": f"{n:,}"}

    @cached_property
    def choice(self) -> Choice | None:
        if self.draft is None:
            return None
        how = self.form.cleaned_data["how"]
        return next((choice for choice in self.choices if choice.value == how), None)

    @property
    def offer(self) -> str:
        """Identifies what a press of this page launches: the newest batch it knew, and the number
        of items."""
        newest = self.batches[-1].pk if self.batches else 0
        return f"{newest}-{self.choice.n_items if self.choice else 0}"

    @property
    def cost(self) -> Estimate | None:
        return self.choice.cost if self.choice else None

    @cached_property
    def is_all_launched(self) -> bool:
        if self.data is not None or self.again is not None or self.is_elsewhere:
            return False
        return bool(self.batches and self.draft is not None and not self.n_left)

    @cached_property
    def further_round(self) -> dict[str, Any] | None:
        return None if self.again else further_round(self.batches)

    @property
    def later(self) -> Choice | None:
        n = self.n_left - self.choice.n_items if self.choice else 0
        if not 0 < n < self.n_left:
            return None
        return self._priced_choice(
            "",
            ngettext("The other item, later", "The other %(n)s items, later", n) % {"n": f"{n:,}"},
            n,
        )

    @property
    def n_people(self) -> int:
        """The fewest invited people who can do all assignments."""
        draft, choice = self.draft, self.choice
        if draft is None or choice is None or not draft.max_per_worker:
            return 0
        n_each = min(draft.max_per_worker, max(1, choice.n_items))
        return max(draft.max_assignments, -(-choice.n_items * draft.max_assignments // n_each))

    @property
    def needs_amount(self) -> bool:
        return self.draft is not None and not self.draft.connection.is_on_this_site

    @cached_property
    def rooms(self) -> list[Room]:
        return rooms_of(self.study)

    @property
    def floor_usd(self) -> Decimal | None:
        return self.study.team.wage_floor_usd if self.study.team else None

    @property
    def wage(self) -> Wage | None:
        if self.draft is None or self.draft.is_recruited:
            return None
        return wage_of(self.draft.reward_usd, self.duration)

    @cached_property
    def n_implausible(self) -> int:
        return 0 if self.duration.is_measured or not self.batches else n_implausible(self.study)

    @property
    def practice(self) -> dict[str, Any] | None:
        practice = self.draft.document.qualifications.practice if self.draft else None
        if practice is None:
            return None
        reward_usd = Decimal(str(practice.reward_usd)).quantize(CENT)
        duration = practice_duration(practice, self.duration)
        return {
            "n_hits": n_attempts(practice),
            "n_workers": practice.most_workers,
            "reward_usd": reward_usd,
            "hourly_usd": wage_of(reward_usd, duration).typical_usd,
            "time": duration_words(duration.typical_seconds),
        }

    @property
    def workers(self) -> str:
        return workers_text(self.draft) if self.draft else ""

    @property
    def wage_line(self) -> dict[str, int | None]:
        """Places on the scale of the pay, in percent of its length."""
        if self.wage is None:
            return {}
        wage, floor_usd = self.wage, self.floor_usd
        most = max(wage.most_usd, floor_usd or 0, CENT) * Decimal("1.1")
        marks = {"least": wage.least_usd, "typical": wage.typical_usd, "most": wage.most_usd}
        line: dict[str, int | None] = {name: int(100 * usd / most) for name, usd in marks.items()}
        return line | {"floor": None if floor_usd is None else int(100 * floor_usd / most)}

    @property
    def wage_marks(self) -> Iterator[WageMark]:
        """Labels of the scale that do not overlap; the sentence below repeats those left out."""
        if self.wage is None:
            return
        wage, line = self.wage, self.wage_line
        text = _("$%(usd)s an hour (estimate)") % {"usd": wage.typical_usd}
        yield WageMark("typical", text, line["typical"] or 0, room=25)
        least, most = line["least"] or 0, line["most"] or 0
        if most - least < WIDTH_OF_MARK:
            return
        yield WageMark("slow", _("$%(usd)s slow") % {"usd": wage.least_usd}, least)
        yield WageMark("fast", _("$%(usd)s fast") % {"usd": wage.most_usd}, most)
        floor = line["floor"]
        if floor is not None and min(abs(floor - least), abs(floor - most)) >= WIDTH_OF_MARK:
            yield WageMark("minimum", _("minimum $%(usd)s") % {"usd": self.floor_usd}, floor)

    @property
    def checks_line(self) -> str:
        document = self.draft.document if self.draft else None
        return summarize_checks(document.all_checks if document else ())

    @property
    def version_number(self) -> int:
        return max((each.number for each in self.study.protocols.all()), default=1)

    @property
    def times(self) -> dict[str, str]:
        of_duration = self.duration
        seconds = {"typical": of_duration.typical_seconds, "quick": of_duration.quick_seconds}
        seconds["slow"] = of_duration.slow_seconds
        return {name: duration_words(each) for name, each in seconds.items()}

    @property
    def study_cap(self) -> Decimal | None:
        return next((room.budget.cap_usd for room in self.rooms if room.scope == "study"), None)

    @property
    def saving_usd(self) -> Decimal:
        if self.draft is None or self.choice is None or self.draft.n_waves < 2:
            return Decimal(0)
        return wave_saving_usd(
            Batch(
                study=self.study,
                connection=self.draft.connection,
                reward_usd=self.draft.reward_usd,
                max_assignments=self.draft.max_assignments,
                needs_masters=self.draft.needs_masters,
            ),
            self.choice.n_items,
            self.draft.wave_size or self.draft.max_assignments,
        )

    @cached_property
    def fingerprint(self) -> str:
        return texts_fingerprint(self.texts)

    @cached_property
    def pages(self) -> PageCheck | None:
        return page_check(self.study, self.fingerprint)

    @cached_property
    def funds(self) -> Funds | None:
        return funds_of(self.draft.connection) if self.draft else None

    @cached_property
    def check_job(self) -> Job | None:
        if self.draft is None or (self.pages is not None and self.funds is not None):
            return None
        return request_check(
            study=self.study,
            connection=self.draft.connection,
            fingerprint=self.fingerprint,
            requested_by=self.person,
        )

    @property
    def findings(self) -> list[Finding]:
        return [*self.extra, *self._findings]

    @cached_property
    def _findings(self) -> list[Finding]:
        return list(self._look())

    def _look(self) -> Iterator[Finding]:
        yield from form_findings(self.form)
        yield from protocol_findings(self.study)
        yield from item_findings(self.study, current_document(self.study))
        yield from page_findings(self.pages)
        if self.draft is None:
            return
        if self.is_final and self.choice is None:
            yield fault(_("Choose how much is launched."), "how")
        data = self.form.cleaned_data
        yield from selection_findings(self.draft, data, self.n_left)
        yield from elsewhere_findings(self.draft, self.batches)
        yield from connection_findings(self.draft, self.cost, self.funds)
        if self.draft.is_recruited:
            yield from recruiter_findings(
                self.draft,
                self.draft.connection.pk in self.recruiters,
                n_ignored=sum(bool(data[name]) for name in OF_WORKERS),
            )
        else:
            yield from language_findings(self.draft, self.funds)
            yield from qualification_test_findings(self.draft)
            yield from practice_findings(self.draft, self.duration, self.floor_usd)
            yield from pay_findings(self.draft, self.duration, self.floor_usd)
        yield from order_findings(self.draft, self.funds)
        yield from version_findings(self.draft, self.batches, self.study.protocols.all())
        yield from budget_findings(self.rooms, self.cost)
        yield from own_budget_findings(self.cost, data["budget_usd"])
        yield from agreement_findings(self.draft, self.batches)
        yield from term_findings(self.draft, self.choice.n_items if self.choice else 0)

    @property
    def faults(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.FAULT]

    @property
    def holding_faults(self) -> list[Finding]:
        """Those that the next press meets again: a new price is accepted by pressing."""
        return [each for each in self.faults if each.code != PRICE_CHANGED]

    @property
    def pending_findings(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.PENDING]

    @property
    def is_held(self) -> bool:
        return bool(self.faults or self.pending_findings)

    @property
    def has_launched_nothing(self) -> bool:
        return self.is_refused or (self.is_final and self.is_held)

    def reopened(self) -> LaunchView:
        # Nothing is chosen: a second press must not publish other items than those that were read.
        data = {name: value for name, value in (self.data or {}).items() if name != "how"}
        return LaunchView(self.study, self.person, data, is_refused=True, extra=self.extra)

    @property
    def warnings(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.WARNING]

    @property
    def passes(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.PASS]

    @property
    def open_folds(self) -> list[str]:
        """The folds with a fault or a warning, and those of a second round."""
        fields = {each.field for each in (*self.faults, *self.warnings)}
        if self.again is not None:
            fields |= {"round", "excluded_rounds"}
        return [name for name, of_fold in FOLDS.items() if not fields.isdisjoint(of_fold)]

    @cached_property
    def jobs(self) -> list[Job]:
        # Each batch's last publication unless it is done, and the last of all.
        latest: dict[Any, Job] = {}
        for job in jobs_of(self.study).of_kind(PUBLISH)[:100]:
            latest.setdefault(job.arguments["batch"], job)
        jobs = list(latest.values())
        return [job for job in jobs if job is jobs[0] or job.state != job.State.DONE]
