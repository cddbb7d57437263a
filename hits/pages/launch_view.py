"""What the Launch page shows: prices, pay, checks, and what was launched before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db.models import prefetch_related_objects

from accounts.models import User
from annotation.models import Study
from annotation.study_jobs import PUBLISH, jobs_of
from hits.budgets import Room, rooms_of
from hits.costs import CENT, Estimate
from hits.launch_checks import (
    Funds,
    PageCheck,
    funds_of,
    page_check,
    request_check,
    texts_fingerprint,
)
from hits.models import Batch, Connection, Recruiter
from hits.pages.launch_choices import (
    Choice,
    choices_of,
    later_choice,
)
from hits.pages.launch_findings import findings_of
from hits.pages.launch_form import (
    RARE,
    LaunchForm,
    initial,
    purchase,
    second_round,
)
from hits.pages.launch_pay import (
    SUGGESTED_HOURLY_USD,
    PracticeOffer,
    duration_words,
    practice_offer,
    wage_line,
)
from hits.pages.launch_workers import workers_text
from hits.preflight import Finding, Level, wave_saving_usd
from hits.progress import is_offered_here
from hits.recruited_batches import batches_without_study
from hits.selections import OF_ROUND, items_without_hit
from hits.texts import StudyTexts, study_texts
from hits.wages import Duration, Wage, duration_of, n_implausible, reward_for, wage_of
from work.models import Job


@dataclass
class LaunchView:
    """The page of one study for one person; `data` is what its form holds, if anything yet.

    `again` is a batch whose items are to be asked about once more; `n_to_buy` how many items more
    would tell systems apart, and `how_to_buy` how they are drawn. Whoever wants all of it at
    another marketplace too (`is_elsewhere`) has the form though nothing is left. A press finds
    it outdated where it is no longer what the page had offered, and the page is `is_refused` then.
    """

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
        batches = Batch.objects.of(self.study).select_related("connection")
        return list(batches.progressing().order_by("pk"))

    @cached_property
    def recruiters(self) -> set[int]:
        """The connections over which a recruiter is called for the team."""
        rows = Recruiter.objects.of(self.study.team).usable() if self.study.team else None
        return set() if rows is None else set(rows.values_list("connection", flat=True))

    @property
    def is_offered_here(self) -> bool:
        return is_offered_here(self.batches)

    @cached_property
    def undrafted(self) -> list[Batch]:
        """Those whose participants nobody has asked for."""
        return batches_without_study(self.batches)

    @property
    def is_answered(self) -> bool:
        """Whether somebody may come to any of what is out."""
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
            n_items = self.again.hits.order_by().values("item").distinct().count()
            content = {"connection": self.connections[0].pk}
            content |= second_round(self.again, self.batches, n_items)
        elif self.data is None:
            hourly = self.floor_usd or SUGGESTED_HOURLY_USD
            reward = max(reward_for(hourly, self.duration), CENT)
            first = self.connections[0].pk
            last = self._batch_to_follow(own)
            n_left = self._n_left_beside(last) if last else self._n_left(1, first, {})
            content = {"connection": first} | initial(self.study, last, n_left, reward)
            content |= purchase(self.n_to_buy, n_left, self.how_to_buy)
        else:
            content = dict(self.data)
            if enough := content.get("enough_usd"):
                content["reward_usd"] = enough
        if not self.is_final:
            content["part"] = self.next_part(content)
        return LaunchForm(self.study, self.connections, content)

    def _batch_to_follow(self, batches: Sequence[Batch]) -> Batch | None:
        """The newest batch of the first round that has items left, else the newest of all."""
        by_round = sorted(batches, key=lambda each: (each.round, -each.pk))
        last = batches[-1] if batches else None
        return next((each for each in by_round if self._n_left_beside(each)), last)

    def _n_left_beside(self, batch: Batch) -> int:
        return self._n_left(batch.round, batch.connection_id, batch.selection)

    def _n_left(self, round_: int, connection_id: int, selection: Mapping[str, Any]) -> int:
        """The items without a HIT, counted once for each round, connection and earlier round."""
        key = (round_, connection_id, selection.get(OF_ROUND))
        if key not in self.counts:
            connection = next(one for one in self.connections if one.pk == connection_id)
            stub = Batch(
                study=self.study, round=round_, connection=connection, selection=dict(selection)
            )
            self.counts[key] = items_without_hit(stub).count()
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
        """The items without a HIT, of the chosen round and connection."""
        draft = self.draft
        return self._n_left(draft.round, draft.connection_id, draft.selection) if draft else 0

    @cached_property
    def choices(self) -> list[Choice]:
        """How much: a pilot or sample, all that is left, a list."""
        return choices_of(self)

    @cached_property
    def choice(self) -> Choice | None:
        if self.draft is None:
            return None
        how = self.form.cleaned_data["how"]
        return next((choice for choice in self.choices if choice.value == how), None)

    @property
    def offer(self) -> str:
        """What a press of this page is for: so many items, after the newest batch that it knew."""
        newest = self.batches[-1].pk if self.batches else 0
        return f"{newest}-{self.choice.n_items if self.choice else 0}"

    @property
    def cost(self) -> Estimate | None:
        return self.choice.cost if self.choice else None

    @property
    def newest(self) -> Batch:
        return self.batches[-1]

    @cached_property
    def is_all_launched(self) -> bool:
        """Whether nothing is left to launch, and nobody has asked for anything else."""
        if self.data is not None or self.again is not None or self.is_elsewhere:
            return False
        return bool(self.batches and self.draft is not None and not self.n_left)

    @property
    def later(self) -> Choice | None:
        """What is left for later, where not all is launched now."""
        return later_choice(self)

    @property
    def needs_amount(self) -> bool:
        """Whether the amount must be typed: it leaves this site."""
        return self.draft is not None and not self.draft.connection.is_on_this_site

    @cached_property
    def rooms(self) -> list[Room]:
        return rooms_of(self.study)

    @property
    def floor_usd(self) -> Decimal | None:
        return self.study.team.wage_floor_usd if self.study.team else None

    @property
    def wage(self) -> Wage | None:
        """What the reward comes to in an hour; nothing of participants, whose recruiter pays."""
        if self.draft is None or self.draft.is_recruited:
            return None
        return wage_of(self.draft.reward_usd, self.duration)

    @cached_property
    def n_implausible(self) -> int:
        """Submissions that measure nothing, since nobody works so fast; 0 where others do."""
        if self.duration.is_measured or not self.batches:
            return 0
        return n_implausible(self.study)

    @property
    def practice(self) -> PracticeOffer | None:
        """What practice of this launch is, costs and pays, where its workers practise."""
        return practice_offer(self.draft, self.duration) if self.draft else None

    @property
    def workers(self) -> str:
        """Who may work on what the form says."""
        return workers_text(self.draft) if self.draft else ""

    @property
    def wage_line(self) -> dict[str, int | None]:
        """Where on a line of 600 the wages stand, from nothing to a little more than the most."""
        return wage_line(self.wage, self.floor_usd) if self.wage else {}

    @property
    def typical_time(self) -> str:
        return duration_words(self.duration.typical_seconds)

    @property
    def quick_time(self) -> str:
        return duration_words(self.duration.quick_seconds)

    @property
    def slow_time(self) -> str:
        return duration_words(self.duration.slow_seconds)

    @property
    def study_cap(self) -> Decimal | None:
        """The study's budget, if it has one."""
        of_study = (room.budget.cap_usd for room in self.rooms if room.scope == "study")
        return next(of_study, None)

    @property
    def saving_usd(self) -> Decimal:
        """What waves save, of what is launched now."""
        if self.draft is None or self.choice is None or self.draft.n_waves < 2:
            return Decimal(0)
        size = self.draft.wave_size or self.draft.max_assignments
        undivided = Batch(
            study=self.study,
            connection=self.draft.connection,
            reward_usd=self.draft.reward_usd,
            max_assignments=self.draft.max_assignments,
            needs_masters=self.draft.needs_masters,
        )
        return wave_saving_usd(undivided, self.choice.n_items, size)

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
        """The job that looks up what is not known yet."""
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
        return list(findings_of(self))

    @property
    def faults(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.FAULT]

    @property
    def pending_findings(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.PENDING]

    @property
    def is_held(self) -> bool:
        """Whether pressing would launch nothing."""
        return bool(self.faults or self.pending_findings)

    @property
    def has_launched_nothing(self) -> bool:
        """Whether the press that this page answers was in vain."""
        return self.is_refused or (self.is_final and self.is_held)

    def reopened(self) -> LaunchView:
        """The page for a press whose own had become untrue: with nothing chosen, so that whoever
        presses once more publishes no other amount than the one that they had read."""
        data = {name: value for name, value in (self.data or {}).items() if name != "how"}
        return LaunchView(self.study, self.person, data, is_refused=True, extra=self.extra)

    @property
    def warnings(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.WARNING]

    @property
    def passes(self) -> list[Finding]:
        return [each for each in self.findings if each.level is Level.PASS]

    @property
    def is_more_open(self) -> bool:
        """Whether a field under More needs somebody, or says what is special about this launch."""
        if self.again is not None:
            return True
        return any(each.field in RARE for each in (*self.faults, *self.warnings))

    @cached_property
    def jobs(self) -> list[Job]:
        """Each batch's last publication that is not done, and the last of all."""
        latest: dict[Any, Job] = {}
        for job in jobs_of(self.study).of_kind(PUBLISH)[:100]:
            latest.setdefault(job.arguments["batch"], job)
        jobs = list(latest.values())
        return [
            job for position, job in enumerate(jobs) if position == 0 or job.state != job.State.DONE
        ]
