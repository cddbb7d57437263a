from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from marketplace.models.hits import HitType
from marketplace.models.participations import Session
from marketplace.models.people import Requester
from marketplace.models.recruiting import RecruitedStudy, RecruiterConnection


class RecruiterEvent(models.Model):
    """A recruiter's news that something changed there, received once. It is a hint: what became
    of it is asked for. Who it was about is not kept."""

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="events"
    )
    event_id = models.CharField(max_length=100)
    kind = models.CharField(max_length=100, blank=True)
    submission_id = models.CharField(max_length=100, blank=True)
    external_study_id = models.CharField(max_length=100, blank=True)
    received_at = models.DateTimeField()
    followed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "event_id"], name="one_event_per_event_id"
            )
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(followed_at=None), name="event_unfollowed"),
            models.Index(fields=["received_at"], name="event_received"),
        ]

    def __str__(self) -> str:
        return self.event_id


class RecruiterCharge(models.Model):
    """What a recruiter charged, in its own currency. It is beside the ledger: no money moves."""

    class Kind(models.TextChoices):
        STUDY = "study", _("Study")
        REWARD = "reward", _("Reward")
        BONUS = "bonus", _("Bonus")
        SCREEN_OUT = "screen_out", _("Screen-out payment")

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.PROTECT, related_name="charges"
    )
    study = models.ForeignKey(
        RecruitedStudy, null=True, on_delete=models.SET_NULL, related_name="charges"
    )
    session = models.ForeignKey(
        Session, null=True, on_delete=models.SET_NULL, related_name="charges"
    )
    kind = models.CharField(max_length=10, choices=Kind)
    currency = models.CharField(max_length=3)
    # Recruiters state amounts with fractions of a cent.
    amount = models.DecimalField(max_digits=14, decimal_places=4)
    external_id = models.CharField(max_length=100)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "kind", "external_id"], name="one_charge_per_external_id"
            ),
            models.CheckConstraint(condition=Q(amount__gt=0), name="a_charge_is_money"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} by {self.connection}"


class RecruitingRule(models.Model):
    """What a requester's programs create and a recruiter's participants are to do, though the
    programs know nothing of it (see marketplace.recruiting.rules)."""

    requester = models.ForeignKey(
        Requester, on_delete=models.CASCADE, related_name="recruiting_rules"
    )
    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="rules"
    )
    # That a HIT type's title or keywords have in them; empty matches every one.
    words = models.CharField(max_length=100, blank=True)
    # In the account's currency; none: the HITs' own rewards.
    reward = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    minutes = models.PositiveSmallIntegerField()
    items_per_session = models.PositiveSmallIntegerField(default=1)
    # What all studies together may cost: agreed to beforehand, since nobody types it back.
    most_cost = models.DecimalField(max_digits=14, decimal_places=2)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(most_cost__gt=0), name="a_rule_has_an_amount"),
            models.CheckConstraint(
                condition=Q(items_per_session__gte=1), name="a_ruled_participation_has_a_hit"
            ),
        ]

    def __str__(self) -> str:
        return self.words or f"Everything of {self.requester}"


class AttachedHitType(models.Model):
    """A HIT type that a rule has let a recruiter have, of which one study after the other comes."""

    rule = models.ForeignKey(RecruitingRule, on_delete=models.PROTECT, related_name="attached")
    hit_type = models.OneToOneField(HitType, on_delete=models.CASCADE, related_name="attached")
    # When none of its HITs was open any more: those that come later have a study of their own.
    ended_at = models.DateTimeField(null=True)
    # What its publication, or more places, cost, from before it is asked for until it is charged.
    pending_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # Why nobody is recruited for it, where something is in the way.
    problem = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.hit_type} by {self.rule}"

    @property
    def study(self) -> RecruitedStudy | None:
        """The one by which participants come, or came last."""
        return self.studies.select_related("connection", "hit_type").order_by("-pk").first()


class Intent(models.Model):
    """What is to be done at a recruiter's, written down before anybody is called, so that it is
    done once (see marketplace.recruiting.intents)."""

    class Kind(models.TextChoices):
        APPROVE = "approve", _("Approve")
        REJECT = "reject", _("Reject")
        BONUS = "bonus", _("Pay a bonus")
        MESSAGE = "message", _("Send a message")
        # Of a submission without its work: never sent, but put before a person.
        DOUBT = "doubt", _("Pay without work?")

    class State(models.TextChoices):
        WRITTEN = "written", _("To be done")
        SENT = "sent", _("Sent")
        UNCERTAIN = "uncertain", _("Uncertain")
        DONE = "done", _("Done")
        REFUSED = "refused", _("Refused")

    # Of which the recruiter's answer, or a person's, is not known yet.
    OPEN_STATES = (State.WRITTEN, State.SENT, State.UNCERTAIN)

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="intents"
    )
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="intents")
    kind = models.CharField(max_length=7, choices=Kind)
    # What would be the same intent once more has the same key.
    key = models.CharField(max_length=120)
    text = models.TextField(blank=True)
    amount = models.DecimalField(max_digits=12, decimal_places=2, null=True)
    currency = models.CharField(max_length=3, blank=True)
    state = models.CharField(max_length=9, choices=State, default=State.WRITTEN)
    # What was there before a bonus was paid, and its set-up: by these a lost answer is settled.
    basis = models.JSONField(default=dict, blank=True)
    # Why it was refused, or what is not known of it.
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connection", "key"], name="one_intent_per_key"),
            models.CheckConstraint(
                condition=Q(kind="bonus", amount__gt=0) & ~Q(currency="")
                | ~Q(kind="bonus") & Q(amount=None, currency=""),
                name="a_bonus_intent_has_its_amount",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.session}"
