from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_entity_id, new_token
from marketplace.models.hits import Assignment, HitType
from marketplace.models.people import Requester, WorkerAccount


class Outcome(models.TextChoices):
    """How a participation ends, as the participant's recruiter is informed of it."""

    COMPLETED = "completed", _("Completed")
    NO_CONSENT = "no_consent", _("No consent")
    INCOMPATIBLE_DEVICE = "incompatible_device", _("Incompatible device")
    FAILED_ATTENTION = "failed_attention", _("Failed attention checks")
    SCREENED_OUT = "screened_out", _("Screened out")
    NO_MORE_ITEMS = "no_more_items", _("No items left")
    FOLLOW_UP = "follow_up", _("Follow-up study")


class RecruiterConnection(models.Model):
    """A requester's account at a recruiter, who sends participants and pays them."""

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
    # What the recruiter's API wants besides, such as a workspace.
    settings = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    # What was wrong when it was called last, for whoever may mend it.
    problem = models.TextField(blank=True)
    called_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "kind", "name"], name="one_recruiter_per_kind_and_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class RecruitedStudy(models.Model):
    """HITs of one type that are done by participants, a number of HITs each."""

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

    connection = models.ForeignKey(
        RecruiterConnection, on_delete=models.CASCADE, related_name="studies"
    )
    requester = models.ForeignKey(
        Requester, on_delete=models.CASCADE, related_name="recruited_studies"
    )
    hit_type = models.ForeignKey(
        HitType, on_delete=models.CASCADE, related_name="recruited_studies"
    )
    # Of the link that participants open.
    token = models.CharField(max_length=32, unique=True, default=new_token)
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
    # Whose participants may not take part.
    excluded = models.ManyToManyField(
        "self", symmetrical=False, blank=True, related_name="excluded_by"
    )
    # Of its participants at the recruiter, once a later study excludes them; how many are in it.
    external_group_id = models.CharField(max_length=100, blank=True)
    group_size = models.PositiveIntegerField(default=0)
    # What the recruiter said that so many places in all cost, beyond those it has already.
    quoted_places = models.PositiveIntegerField(null=True)
    quoted_cost = models.DecimalField(max_digits=14, decimal_places=4, null=True)
    # What is to be done at the recruiter, by a background job; one thing at a time.
    action = models.CharField(max_length=7, choices=Action, blank=True)
    action_values = models.JSONField(default=dict, blank=True)
    action_number = models.PositiveIntegerField(default=0)
    # By which whoever requests it over HTTP says the same thing twice.
    action_token = models.CharField(max_length=64, blank=True)
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
                condition=Q(items_per_session__gte=1), name="a_participation_has_a_hit"
            ),
            models.UniqueConstraint(
                fields=["requester", "request_token"],
                condition=~Q(request_token=""),
                name="one_study_per_request_token",
            ),
        ]
        verbose_name_plural = "recruited studies"

    def __str__(self) -> str:
        return self.name

    @property
    def is_open(self) -> bool:
        """Whether participants are let in."""
        return self.state == self.State.ACTIVE


class OutcomeCode(models.Model):
    """The code that tells a recruiter of one outcome. It is stored before anybody sees it."""

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

    def __str__(self) -> str:
        return f"{self.outcome} of {self.study}"


class Invitation(models.Model):
    """One participant's own link to a study of an own lab's."""

    study = models.ForeignKey(RecruitedStudy, on_delete=models.CASCADE, related_name="invitations")
    token = models.CharField(max_length=32, unique=True, default=new_token)
    label = models.CharField(max_length=100, blank=True)
    worker = models.ForeignKey(
        WorkerAccount, null=True, on_delete=models.SET_NULL, related_name="invitations"
    )
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.label or self.token


class Participant(models.Model):
    """The account that a recruiter's id stands for. Only a seal of the id is here, by which the
    same id is recognised; it holds for one connection, because whoever knows the id comes in."""

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

    def __str__(self) -> str:
        return f"{self.worker} from {self.connection}"


class SessionQuerySet(models.QuerySet["Session"]):
    def of(self, requester: Requester) -> Self:
        """Those of one requester's studies."""
        return self.filter(study__requester=requester)

    def overdue(self, now: object) -> Self:
        """Those whose time is over and who are not known to have ended."""
        return self.filter(state=Session.State.STARTED, expires_at__lte=now)


class Session(models.Model):
    """One participation: what a recruiter calls a submission. The recruiter's id of the person
    is nowhere else, and only encrypted here."""

    class State(models.TextChoices):
        STARTED = "started", _("Started")
        FINISHED = "finished", _("Finished")
        RETURNED = "returned", _("Returned")
        TIMED_OUT = "timed_out", _("Timed out")
        APPROVED = "approved", _("Approved")
        REJECTED = "rejected", _("Rejected")
        SCREENED_OUT = "screened_out", _("Screened out")

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


class SessionDemographics(models.Model):
    """What a participant told the recruiter, encrypted; gone with the session."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="demographics")
    encrypted_answers = models.TextField()
    fetched_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "session demographics"

    def __str__(self) -> str:
        return f"Demographics of {self.session}"


class SessionItem(models.Model):
    """An assignment that was reserved for a session, in the order in which it is shown."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="items")
    assignment = models.OneToOneField(
        Assignment, on_delete=models.PROTECT, related_name="session_item"
    )
    position = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["session", "position"], name="one_item_per_position")
        ]

    def __str__(self) -> str:
        return f"{self.position} of {self.session}"


class SurplusAnswer(models.Model):
    """Work that came after its assignment was given up and another had taken its place."""

    assignment = models.OneToOneField(
        Assignment, on_delete=models.PROTECT, related_name="surplus_answer"
    )
    answer = models.TextField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"Surplus of {self.assignment}"


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
    """A HIT type that a rule has let a recruiter have, and the study that came of it."""

    rule = models.ForeignKey(RecruitingRule, on_delete=models.PROTECT, related_name="attached")
    hit_type = models.OneToOneField(HitType, on_delete=models.CASCADE, related_name="attached")
    study = models.OneToOneField(
        RecruitedStudy, null=True, on_delete=models.SET_NULL, related_name="attached"
    )
    # Why nobody is recruited for it, where something is in the way.
    problem = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.hit_type} by {self.rule}"


class Intent(models.Model):
    """What is to be done at a recruiter's, written down before anybody is called, so that it is
    done once (see marketplace.recruiting.decisions)."""

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
