"""Recruiters whom a marketplace calls for a team, and their studies of batches: a mirror of what
the marketplace says. Tokens, and who participants are, stay there."""

import secrets
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import CreatedRow, Team
from annotation.models import StudyRowQuerySet
from hits.models.batches import Batch
from work.models import BaseRow


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def of(self, team: Team) -> Self:
        return self.filter(team=team)

    def usable(self) -> Self:
        return self.filter(closed_at=None)


class Connection(CreatedRow):
    """A requester account at a marketplace: where it is, and the key to it.

    One without a team is the site's own, named after a profile of `hits.endpoints`; its key is
    in the environment. Its secret is encrypted under ENCRYPTION_KEYS.
    """

    class Fees(models.TextChoices):
        NONE = "none", _("No fees")
        MTURK = "mturk", _("Amazon Mechanical Turk's")

    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="connections"
    )
    name = models.CharField(_("name"), max_length=40)
    marketplace = models.CharField(
        max_length=255,
        help_text="Whose worker ids these are: a profile, or the host of another marketplace.",
    )
    endpoint_url = models.URLField(
        _("address"), blank=True, help_text="Empty where the profile's, or this site's own."
    )
    access_key_id = models.CharField(_("access key"), max_length=128, blank=True)
    encrypted_secret = models.TextField(blank=True, editable=False)
    fees = models.CharField(_("fees"), max_length=8, choices=Fees, default=Fees.NONE)
    failed_at = models.DateTimeField(null=True, blank=True, editable=False)
    problem = models.TextField(
        blank=True, editable=False, help_text="Why nothing could be collected over it last."
    )
    decisions_after = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="Up to where decisions on participants' work were heard of.",
    )
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when nothing new is published over it."
    )

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["team", "name"]
        constraints = [
            models.UniqueConstraint(fields=["team", "name"], name="connection_name_once_a_team"),
            models.UniqueConstraint(
                fields=["name"], condition=Q(team=None), name="site_connection_once_a_profile"
            ),
        ]

    def __str__(self) -> str:
        # A team may name its connection to this site as it likes.
        return str(_("This site")) if self.team_id is None and self.is_on_this_site else self.name

    @property
    def is_on_this_site(self) -> bool:
        return self.marketplace == "local"


# As long as a recruiter's approvals are followed by the marketplace.
FOLLOWED_FOR = timedelta(days=30)
# What each of a recruiter's charges is: the second is of the first, which is free again otherwise.
SET_ASIDE, PAID_OF_IT = "study", "reward"
# Of whose participants the place is free again.
GAVE_BACK = ("returned", "timed_out", "rejected", "screened_out")
CHARGES = {
    SET_ASIDE: _("set aside for places"),
    "reward": _("of it paid to who was approved"),
    "screen_out": _("paid to who may not take part"),
    "bonus": _("paid in bonuses"),
}


def paid_of(charges: Mapping[str, str]) -> Decimal:
    return sum((Decimal(charges.get(kind, 0)) for kind in CHARGES if kind != SET_ASIDE), Decimal(0))


def set_aside_of(charges: Mapping[str, str]) -> Decimal:
    return max(Decimal(charges.get(SET_ASIDE, 0)) - Decimal(charges.get(PAID_OF_IT, 0)), Decimal(0))


def new_recruitment_key() -> str:
    return secrets.token_hex(8)


class RecruiterQuerySet(models.QuerySet["Recruiter"]):
    def of(self, team: Team | None) -> Self:
        return self.filter(connection__team=team, connection__closed_at=None)

    def usable(self) -> Self:
        return self.filter(is_connected=True)


class Recruiter(BaseRow):
    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="recruiters")
    public_id = models.CharField(max_length=64)
    name = models.CharField(max_length=100)
    is_connected = models.BooleanField(default=False)
    is_being_tried = models.BooleanField(default=False)
    account = models.CharField(max_length=200, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    workspace = models.CharField(max_length=64, blank=True)
    project = models.CharField(max_length=64, blank=True)
    problem = models.TextField(blank=True)
    fetched_at = models.DateTimeField()

    objects = RecruiterQuerySet.as_manager()

    class Meta:
        ordering = ["connection", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "public_id"], name="recruiter_once_a_connection"
            )
        ]

    @property
    def n_open(self) -> int:
        return sum(one.is_live for one in self.recruitments.all())


class RecruitmentQuerySet(StudyRowQuerySet["Recruitment"]):
    study_field = "batch__study"

    def unfinished(self) -> Self:
        """Those that something may still come of. That is also so for a while after all is
        closed: participants take answers back, and submissions without work are approved by
        time."""
        recently = timezone.now() - FOLLOWED_FOR
        is_open = Q(batch__closed_at=None) | Q(state__in=Recruitment.LIVE)
        is_open |= Q(batch__closed_at__gt=recently) & ~Q(public_id="")
        is_open |= Q(is_under_way=True) | Q(n_waiting__gt=0, recruiter__is_connected=True)
        return self.filter(
            is_open
            | Exists(RecruiterCall.objects.filter(recruitment=OuterRef("pk"), is_uncertain=True))
        ).exclude(state__in=Recruitment.OVER)

    def live(self) -> Self:
        return self.filter(state__in=Recruitment.LIVE)


class Recruitment(CreatedRow):
    """A batch's HITs as a study at a recruiter. `key` finds it again at the marketplace, which
    drafts one study under it, however often it is asked to."""

    class State(models.TextChoices):
        REQUESTED = "requested", _("Being drafted")
        DRAFT = "draft", _("Draft")
        ACTIVE = "active", _("Open")
        PAUSED = "paused", _("Paused")
        STOPPED = "stopped", _("Closed")
        REFUSED = "refused", _("Not drafted")
        DISCARDED = "discarded", _("Discarded")

    # Never published, and never to be.
    OVER = (State.REFUSED, State.DISCARDED)
    LIVE = (State.ACTIVE, State.PAUSED)

    batch = models.ForeignKey(Batch, on_delete=models.PROTECT, related_name="recruitments")
    recruiter = models.ForeignKey(Recruiter, on_delete=models.PROTECT, related_name="recruitments")
    key = models.CharField(max_length=16, unique=True, default=new_recruitment_key, editable=False)
    public_id = models.CharField(
        max_length=64, blank=True, help_text="The study's at the marketplace, once it has one."
    )
    reward = models.DecimalField(max_digits=10, decimal_places=2)
    minutes = models.PositiveSmallIntegerField()
    items = models.PositiveSmallIntegerField(help_text="HITs that a participant does.")
    places = models.PositiveIntegerField(default=0, help_text="0: as many as judgments need.")
    devices = models.JSONField(default=list, blank=True)
    filters = models.JSONField(default=list, blank=True, help_text="Whom the recruiter invites.")
    labels = models.JSONField(default=list, blank=True, help_text="The recruiter's, of the study.")
    screen_out_reward = models.DecimalField(
        max_digits=10,
        decimal_places=2,
        null=True,
        blank=True,
        help_text="Of whoever may not take part.",
    )
    screen_out_places = models.PositiveIntegerField(default=0)
    excluded = models.ManyToManyField("self", symmetrical=False, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    quoted_places = models.PositiveIntegerField(null=True, blank=True)
    quoted_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    quoted_bonus = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    quoted_bonus_cost = models.DecimalField(
        max_digits=14,
        decimal_places=4,
        null=True,
        blank=True,
        help_text="What that bonus costs with the recruiter's fees, as it said.",
    )
    is_under_way = models.BooleanField(
        default=True, help_text="Whether the marketplace has not done yet what was requested."
    )
    n_requests = models.PositiveIntegerField(default=0, help_text="How many were made of it.")
    problem = models.TextField(blank=True, help_text="Why the last of it was not done.")
    sessions = models.JSONField(default=dict, blank=True, help_text="In numbers, by their state.")
    unsent = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of the sessions, whose decision the recruiter has not got yet, by state.",
    )
    n_entered = models.PositiveIntegerField(
        default=0, help_text="Of those at work, who has entered a code at the recruiter."
    )
    outcomes = models.JSONField(default=dict, blank=True, help_text="In numbers, by outcome.")
    free = models.PositiveIntegerField(
        null=True, blank=True, help_text="Places that nobody has, while it is open."
    )
    needed = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="Places for the judgments that nobody gives at the moment, while it is open.",
    )
    reward_there = models.DecimalField(
        max_digits=14,
        decimal_places=4,
        null=True,
        blank=True,
        help_text="What the recruiter pays, where it can be changed by hand.",
    )
    screen_out_reward_there = models.DecimalField(
        max_digits=14,
        decimal_places=4,
        null=True,
        blank=True,
        help_text="The same of whoever may not take part.",
    )
    charges = models.JSONField(
        default=dict, blank=True, help_text="What the recruiter charged, by kind, as texts."
    )
    refused_bonuses = models.JSONField(
        default=dict, blank=True, help_text="Why, by the token that each was requested under here."
    )
    n_waiting = models.PositiveIntegerField(
        default=0, help_text="Decisions that the recruiter has not got yet."
    )
    fetched_at = models.DateTimeField(null=True, blank=True)

    objects = RecruitmentQuerySet.as_manager()

    class Meta:
        ordering = ["batch", "pk"]
        constraints = [
            models.CheckConstraint(condition=Q(reward__gt=0), name="a_participant_is_paid")
        ]

    @property
    def charged(self) -> list[tuple[str, Decimal]]:
        return [
            (str(label), Decimal(self.charges[kind]))
            for kind, label in CHARGES.items()
            if kind in self.charges
        ]

    @property
    def changed_reward(self) -> Decimal | None:
        return self.reward_there if self.reward_there not in (None, self.reward) else None

    @property
    def changed_screen_out_reward(self) -> Decimal | None:
        there = self.screen_out_reward_there
        return there if there not in (None, self.screen_out_reward) else None

    @property
    def cost_in_all(self) -> Decimal | None:
        if self.state != self.State.STOPPED or not self.charges:
            return None
        return paid_of(self.charges)

    @property
    def n_free(self) -> int:
        if self.free is not None:
            return int(self.free)
        n_taken: int = sum(n for state, n in self.sessions.items() if state not in GAVE_BACK)
        return max(0, int(self.places) - n_taken)

    @property
    def n_for_nobody(self) -> int:
        if self.state != self.State.ACTIVE or self.needed is None:
            return 0
        return max(0, self.n_free - self.needed)

    @property
    def is_live(self) -> bool:
        return self.state in self.LIVE


class RecruiterCallQuerySet(models.QuerySet["RecruiterCall"]):
    def to_look_after(self) -> Self:
        return self.filter(Q(is_uncertain=True) | Q(put_away_at=None))


class RecruiterCall(BaseRow):
    recruitment = models.ForeignKey(Recruitment, on_delete=models.CASCADE, related_name="calls")
    number = models.PositiveBigIntegerField(help_text="The marketplace's, by which it is settled.")
    kind = models.CharField(max_length=20)
    is_uncertain = models.BooleanField()
    amount = models.DecimalField(max_digits=14, decimal_places=4, null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    worker_id = models.CharField(max_length=64)
    request_token = models.CharField(
        max_length=100, blank=True, help_text="By which a bonus was requested."
    )
    submission_id = models.CharField(
        max_length=240, blank=True, help_text="While the marketplace is followed."
    )
    problem = models.TextField(blank=True)
    shows_by = models.DateTimeField(
        null=True,
        blank=True,
        help_text="Until when it may show that it was done; it is not sent again before.",
    )
    put_away_at = models.DateTimeField(
        null=True, blank=True, help_text="When somebody had seen that it was refused."
    )

    objects = RecruiterCallQuerySet.as_manager()

    class Meta:
        ordering = ["recruitment", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["recruitment", "number"], name="recruiter_call_once")
        ]


class Participation(BaseRow):
    """How a participant whose work waits for a decision stands at the recruiter: the place was
    given up, or another code was entered than the one given."""

    recruitment = models.ForeignKey(
        Recruitment, on_delete=models.CASCADE, related_name="participations"
    )
    worker_id = models.CharField(max_length=64)
    state = models.CharField(max_length=20)
    outcome = models.CharField(max_length=20, blank=True, help_text="Whose code was given.")
    reported = models.CharField(max_length=20, blank=True, help_text="Whose code was entered.")
    arrived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["recruitment", "pk"]
        indexes = [models.Index(fields=["worker_id"], name="participation_of_worker")]


class LinkStudyQuerySet(models.QuerySet["LinkStudy"]):
    def to_follow(self) -> Self:
        """Those whose people may still work, or whose answers may still be taken back."""
        return self.filter(
            Q(batch__closed_at=None) | Q(batch__closed_at__gt=timezone.now() - FOLLOWED_FOR)
        )


class LinkStudy(BaseRow):
    """A batch's invitation links, as the marketplace has them."""

    batch = models.OneToOneField(Batch, on_delete=models.CASCADE, related_name="link_study")
    public_id = models.CharField(
        max_length=64, blank=True, help_text="The study's at the marketplace, once it has one."
    )
    is_open = models.BooleanField(default=True)
    shared_link = models.URLField(
        max_length=500, blank=True, help_text="Lets in anybody, under an anonymous code."
    )
    fetched_at = models.DateTimeField(null=True, blank=True)

    objects = LinkStudyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "link studies"
        ordering = ["batch"]


class InvitedPerson(models.Model):
    """A person with a link of their own, or one who came by the shared link."""

    study = models.ForeignKey(LinkStudy, on_delete=models.CASCADE, related_name="people")
    number = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The invitation's at the marketplace, once it has one."
    )
    name = models.CharField(max_length=100, blank=True)
    link = models.URLField(max_length=500, blank=True)
    worker_id = models.CharField(max_length=64, blank=True)
    state = models.CharField(max_length=20, blank=True, help_text="Of the work; empty: not begun.")
    outcome = models.CharField(max_length=20, blank=True)
    n_hits = models.PositiveIntegerField(default=0, help_text="HITs that are reserved or done.")
    n_done = models.PositiveIntegerField(default=0)
    arrived_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was requested here."
    )
    is_revoked = models.BooleanField(default=False, help_text="As the marketplace says.")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name_plural = "invited people"
        ordering = ["study", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["study", "number"], name="invited_once_a_number")
        ]

    def __str__(self) -> str:
        return self.name or self.worker_id
