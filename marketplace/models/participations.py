from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_entity_id, new_token
from marketplace.models.hits import Assignment, HitType
from marketplace.models.people import Requester, Row, WorkerAccount
from marketplace.models.recruiting import Outcome, RecruitedStudy, RecruiterConnection


class Invitation(Row):
    study = models.ForeignKey(RecruitedStudy, on_delete=models.CASCADE, related_name="invitations")
    token = models.CharField(max_length=32, unique=True, default=new_token)
    label = models.CharField(max_length=100, blank=True)
    worker = models.ForeignKey(
        WorkerAccount, null=True, on_delete=models.SET_NULL, related_name="invitations"
    )
    created_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)


class Participant(Row):
    """The account of a recruiter's participant. The recruiter's id is only sealed, so that the
    same id is recognized at the same connection: whoever knows an id can come in with it."""

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="participants"
    )
    seal = models.CharField(max_length=64)
    worker = models.ForeignKey(
        WorkerAccount, on_delete=models.CASCADE, related_name="participations"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["connection", "seal"], name="one_account_per_seal")
        ]


class SessionQuerySet(models.QuerySet["Session"]):
    def of(self, requester: Requester) -> Self:
        return self.filter(study__requester=requester)

    def locked(self) -> Self:
        """Locked until the transaction ends, without rows joined to them."""
        return self.select_for_update(no_key=True, of=("self",))

    def overdue(self, now: object) -> Self:
        return self.filter(state=Session.State.STARTED, expires_at__lte=now)

    def holding_places(self) -> Self:
        """Those whose place nobody else can have at the recruiter. After a timeout, completed work
        or an entered code still holds it."""
        is_free = Q(state__in=Session.PLACE_FREE_STATES)
        is_late = Q(outcome=Outcome.COMPLETED) | ~Q(reported="")
        return self.exclude(is_free & ~(Q(state=Session.State.TIMED_OUT) & is_late))


class Session(Row):
    """One participation, which recruiters call a submission. The only place with the recruiter's
    id of the person, encrypted."""

    class State(models.TextChoices):
        STARTED = "started", _("Started")
        FINISHED = "finished", _("Finished")
        RETURNED = "returned", _("Returned")
        TIMED_OUT = "timed_out", _("Timed out")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        SCREENED_OUT = "screened_out", _("Screened out")

    OTHER = "other"
    # Whose place is free again at the recruiter; who ran out of time with all of the work done
    # may have it back by a late code.
    PLACE_FREE_STATES = (State.RETURNED, State.TIMED_OUT, State.REJECTED, State.SCREENED_OUT)

    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="sessions"
    )
    study = models.ForeignKey(RecruitedStudy, on_delete=models.CASCADE, related_name="sessions")
    submission_id = models.CharField(max_length=240)
    encrypted_participant_id = models.TextField(blank=True)
    # What the link called the study, for the way back.
    external_study_id = models.CharField(max_length=200, blank=True)
    worker = models.ForeignKey(WorkerAccount, on_delete=models.CASCADE, related_name="sessions")
    state = models.CharField(max_length=12, choices=State, default=State.STARTED)
    # Decided once: the code is shown again to whoever comes back.
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True)
    code = models.CharField(max_length=64, blank=True)
    arrived_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # The outcome whose code was entered at the recruiter; OTHER of any other, which is not kept:
    # people enter their own ids there. Empty where none was, as far as is known.
    reported = models.CharField(max_length=20, blank=True)
    # Whether the participant has come to it in a browser that is known to be theirs.
    is_proven = models.BooleanField(default=False)

    objects = SessionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "submission_id"], name="one_session_per_submission"
            ),
            models.CheckConstraint(
                condition=Q(outcome="", code="") | ~Q(outcome="") & ~Q(code=""),
                name="an_outcome_has_its_code",
            ),
        ]
        indexes = [
            models.Index(fields=["worker", "-id"], name="session_of_worker"),
            models.Index(fields=["expires_at"], condition=Q(state="started"), name="session_open"),
        ]

    def __str__(self) -> str:
        return self.public_id


class SessionDemographics(Row):
    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="demographics")
    encrypted_answers = models.TextField()
    fetched_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "session demographics"


class SessionItem(Row):
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="items")
    assignment = models.OneToOneField(
        Assignment, on_delete=models.PROTECT, related_name="session_item"
    )
    position = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "position"], name="one_item_per_position")
        ]


class SurplusAnswer(Row):
    """Late work whose place another worker had taken."""

    assignment = models.OneToOneField(
        Assignment, on_delete=models.PROTECT, related_name="surplus_answer"
    )
    answer = models.TextField()
    received_at = models.DateTimeField()


class ErasedSubmission(Row):
    """A participation whose participant's data was erased, while the recruiter may still list it.
    The sealed id keeps it from being taken for a new one."""

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="erased_submissions"
    )
    # Whose places are counted; it says nothing of who it was.
    study = models.ForeignKey(
        RecruitedStudy, null=True, on_delete=models.SET_NULL, related_name="erased_submissions"
    )
    seal = models.CharField(max_length=64)
    # The kind of a charge for it that was not written down yet, since no price was heard.
    uncharged = models.CharField(max_length=10, blank=True)
    # Whether it was not paid there yet, as far as was known: by time or by hand it may be since.
    is_unpaid = models.BooleanField(default=False)
    # Of a participation that was given back, or rejected, somebody else can have the place.
    holds_place = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["connection", "seal"], name="one_erased_submission_per_seal"
            )
        ]


class RecruiterEvent(Row):
    """A recruiter's notice that something changed. It is only a hint: the recruiter is asked.
    Nobody's id is kept."""

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


class RecruiterCharge(Row):
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


class RecruitingRule(Row):
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


class AttachedHitType(Row):
    """A HIT type that a rule gave to a recruiter; it may have several studies, one after the
    other."""

    rule = models.ForeignKey(RecruitingRule, on_delete=models.PROTECT, related_name="attached")
    hit_type = models.OneToOneField(HitType, on_delete=models.CASCADE, related_name="attached")
    # When none of its HITs was open any more: those that come later have a study of their own.
    ended_at = models.DateTimeField(null=True)
    # What its publication, or more places, cost, from before it is asked for until it is charged.
    pending_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # Why nobody is recruited for it, where something is in the way.
    problem = models.TextField(blank=True)

    @property
    def study(self) -> RecruitedStudy | None:
        return self.studies.select_related("connection", "hit_type").order_by("-pk").first()


class Intent(Row):
    """An action at a recruiter, stored before the call so that it is done once (see
    marketplace.recruiting.intents)."""

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
