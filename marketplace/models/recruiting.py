from decimal import Decimal

from django.db import models
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_entity_id, new_token
from marketplace.models.hits import HitType
from marketplace.models.people import Requester, Row


class Outcome(models.TextChoices):
    COMPLETED = "completed", _("Completed")
    NO_CONSENT = "no_consent", _("No consent")
    INCOMPATIBLE_DEVICE = "incompatible_device", _("Incompatible device")
    FAILED_ATTENTION = "failed_attention", _("Failed attention checks")
    SCREENED_OUT = "screened_out", _("Screened out")
    NO_MORE_ITEMS = "no_more_items", _("No items left")
    FOLLOW_UP = "follow_up", _("Follow-up study")


class RecruiterConnection(Row):
    class Kind(models.TextChoices):
        PROLIFIC = "prolific", _("Prolific")
        LINK_PANEL = "panel", _("Panel with links")
        OWN_LAB = "invite", _("Invite links")

    requester = models.ForeignKey(Requester, on_delete=models.CASCADE, related_name="recruiters")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    kind = models.CharField(max_length=8, choices=Kind)
    # A panel's name: participants are known again by it from one study to the next.
    name = models.CharField(max_length=100)
    encrypted_token = models.TextField(blank=True)
    # A new token, with what goes with it, that is still to be tried.
    encrypted_offer = models.TextField(blank=True)
    # With what the recruiter signs its webhooks, and when they were seen to be subscribed to.
    encrypted_webhook_secret = models.TextField(blank=True)
    webhooks_checked_at = models.DateTimeField(null=True)
    # The group of whom the requester blocks, which every study leaves out, and who is in it.
    blocked_group_id = models.CharField(max_length=100, blank=True)
    blocked_worker_ids = models.JSONField(default=list, blank=True)
    # When it was made anew, since somebody had deleted the one that earlier studies name.
    blocked_group_anew_at = models.DateTimeField(null=True)
    # What the recruiter's API wants besides, such as a workspace.
    settings = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    # What was wrong when it was called last, for whoever may mend it.
    problem = models.TextField(blank=True)
    called_at = models.DateTimeField(null=True)
    # Until when, and by which process, it is called (see marketplace.recruiting.connections).
    turn_until = models.DateTimeField(null=True)
    turn_token = models.CharField(max_length=32, blank=True)
    # When it was looked whether a study that was stopped is open there again.
    stopped_looked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "kind", "name"], name="one_recruiter_per_kind_and_name"
            )
        ]


class RecruitedStudy(Row):
    class State(models.TextChoices):
        DRAFT = "draft", _("Draft")
        ACTIVE = "active", _("Open")
        PAUSED = "paused", _("Paused")
        STOPPED = "stopped", _("Closed")

    class Action(models.TextChoices):
        DRAFT = "draft", _("Draft it")
        PRICE = "price", _("Ask what more places cost")
        PUBLISH = "publish", _("Publish it")
        PLACES = "places", _("Add places")
        PAUSE = "pause", _("Pause it")
        RESUME = "resume", _("Resume it")
        STOP = "stop", _("Stop it")
        DISCARD = "discard", _("Discard the draft")
        BONUS = "bonus", _("Ask what a bonus costs")

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="studies"
    )
    requester = models.ForeignKey(
        Requester, on_delete=models.CASCADE, related_name="recruited_studies"
    )
    hit_type = models.ForeignKey(
        HitType, on_delete=models.CASCADE, related_name="recruited_studies"
    )
    # Of what a rule has attached, where it came of that.
    attached = models.ForeignKey(
        "AttachedHitType", null=True, on_delete=models.SET_NULL, related_name="studies"
    )
    # Of the link that participants open.
    token = models.CharField(max_length=32, unique=True, default=new_token)
    # Whether that link lets everybody in; if not, an own lab's people come by invitations only.
    is_shared = models.BooleanField(default=True)
    name = models.CharField(max_length=100)
    state = models.CharField(max_length=7, choices=State, default=State.ACTIVE)
    # The study's id at the recruiter, where it has one.
    external_id = models.CharField(max_length=100, blank=True)
    # HITs that are reserved for a participant at arrival, and the time for all of them.
    items_per_session = models.PositiveSmallIntegerField(default=1)
    maximum_seconds = models.PositiveIntegerField(default=3600)
    # Whether what somebody has handed in who then returns the participation is withdrawn.
    discards_returned = models.BooleanField(default=False)
    # Of the HITs of its type those whose RequesterAnnotation begins so; empty: all of them.
    annotation_prefix = models.CharField(max_length=255, blank=True)
    # What is posted at a recruiter with an API; the reward is in its account's currency.
    reward = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    minutes = models.PositiveSmallIntegerField(null=True)
    places = models.PositiveIntegerField(default=0)
    devices = models.JSONField(default=list, blank=True)
    # Whom the recruiter invites, a filter a line, and under which labels it lists the study.
    filters = models.JSONField(default=list, blank=True)
    labels = models.JSONField(default=list, blank=True)
    # What it pays whoever is screened out at the door, and how many of them at most.
    screen_out_reward = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    screen_out_places = models.PositiveIntegerField(default=0)
    # What it pays there, as it was seen last: both can be changed there by hand.
    reward_there = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    screen_out_reward_there = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    # Whose participants may not take part.
    excluded = models.ManyToManyField(
        "self", symmetrical=False, blank=True, related_name="excluded_by"
    )
    # Of its participants at the recruiter, once a later study excludes them; how many are in it.
    external_group_id = models.CharField(max_length=100, blank=True)
    group_size = models.PositiveIntegerField(default=0)
    # When it was made anew, since somebody had deleted the one that earlier studies name.
    group_anew_at = models.DateTimeField(null=True)
    # What the recruiter said that so many places in all cost, beyond those it has already.
    quoted_places = models.PositiveIntegerField(null=True)
    quoted_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # What it said last that a bonus costs with its fees.
    quoted_bonus = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    quoted_bonus_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # What is to be done at the recruiter, by a background job; one thing at a time.
    action = models.CharField(max_length=7, choices=Action, blank=True)
    action_values = models.JSONField(default=dict, blank=True)
    action_number = models.PositiveIntegerField(default=0)
    # By which whoever requests it over HTTP says the same thing twice.
    action_token = models.CharField(max_length=64, blank=True)
    # How many, since it was stopped, wait at the recruiter to be paid by time; unknown where it was
    # not stopped, or not all of it was seen.
    n_payable_there = models.PositiveIntegerField(null=True)
    # Why the last of it was not done.
    problem = models.TextField(blank=True)
    # By which whoever drafts it over HTTP says the same thing twice.
    request_token = models.CharField(max_length=64, blank=True)
    # The URL parameters that a panel sends.
    worker_parameter = models.CharField(max_length=64, blank=True)
    study_parameter = models.CharField(max_length=64, blank=True)
    session_parameter = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(items_per_session__gte=1), name="a_participation_has_a_hit"
            ),
            models.UniqueConstraint(
                fields=["requester", "request_token"],
                condition=~models.Q(request_token=""),
                name="one_study_per_request_token",
            ),
        ]
        verbose_name_plural = "recruited studies"

    @property
    def is_open(self) -> bool:
        return self.state == self.State.ACTIVE

    @property
    def reward_paid(self) -> Decimal | None:
        return self.reward if self.reward_there is None else self.reward_there

    @property
    def estimated_seconds(self) -> int:
        """Of a whole participation; 0 if nobody said."""
        each = self.hit_type.estimated_seconds or 0
        return 60 * (self.minutes or 0) or each * self.items_per_session

    @property
    def hourly_reward(self) -> Decimal | None:
        if not self.reward_paid or not self.estimated_seconds:
            return None
        return (self.reward_paid * 3600 / self.estimated_seconds).quantize(Decimal("0.01"))

    @property
    def screen_out_reward_paid(self) -> Decimal | None:
        there = self.screen_out_reward_there
        return self.screen_out_reward if there is None else there


class OutcomeCode(Row):
    # Stored before any participant sees it.
    study = models.ForeignKey(RecruitedStudy, on_delete=models.CASCADE, related_name="codes")
    outcome = models.CharField(max_length=20, choices=Outcome)
    code = models.CharField(max_length=64)
    # Where participants with this outcome return to: SONA's address, for one, gives credit.
    redirect_url = models.CharField(max_length=1000, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["study", "outcome"], name="one_code_per_outcome"),
            models.UniqueConstraint(fields=["study", "code"], name="one_outcome_per_code"),
        ]
