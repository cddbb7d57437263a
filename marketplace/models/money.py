from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from marketplace.identifiers import new_entity_id
from marketplace.models.hits import Assignment, Hit
from marketplace.models.people import Requester, Row, WorkerAccount


class LedgerAccount(Row):
    """Only the account of the world outside may be negative."""

    class Kind(models.TextChoices):
        OUTSIDE = "outside", "Outside the marketplace"
        AVAILABLE = "available", "A requester's available balance"
        HELD = "held", "A requester's money held for published HITs"
        EARNINGS = "earnings", "A worker's earnings"
        PAYOUTS = "payouts", "Earnings on their way out of the marketplace"
        FEES = "fees", "The marketplace's fees"

    kind = models.CharField(max_length=10, choices=Kind)
    requester = models.ForeignKey(
        Requester, null=True, on_delete=models.PROTECT, related_name="ledger_accounts"
    )
    worker = models.ForeignKey(
        WorkerAccount, null=True, on_delete=models.PROTECT, related_name="ledger_accounts"
    )

    # Of earnings: the same worker once more, by what only those have whom the ledger pays.
    payee = models.OneToOneField(
        WorkerAccount,
        null=True,
        to_field="payee_id",
        on_delete=models.PROTECT,
        related_name="earnings_account",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind"],
                condition=models.Q(requester=None, worker=None),
                name="one_ledger_account_of_a_kind",
            ),
            models.UniqueConstraint(
                fields=["requester", "kind"], name="one_ledger_account_per_requester_and_kind"
            ),
            models.UniqueConstraint(
                fields=["worker", "kind"], name="one_ledger_account_per_worker_and_kind"
            ),
            models.CheckConstraint(
                condition=models.Q(
                    kind__in=["outside", "fees", "payouts"], requester=None, worker=None, payee=None
                )
                | models.Q(
                    kind__in=["available", "held"],
                    requester__isnull=False,
                    worker=None,
                    payee=None,
                )
                | models.Q(
                    kind="earnings", requester=None, worker__isnull=False, payee__isnull=False
                ),
                name="ledger_account_has_its_owner",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.requester or self.worker or 'the marketplace'}"


class LedgerTransaction(Row):
    """One movement of money; its entries sum to zero."""

    class Kind(models.TextChoices):
        DEPOSIT = "deposit", _("Deposit")
        HOLD = "hold", _("Hold for published work")
        RELEASE = "release", _("Release of a hold")
        REVERSAL = "reversal", _("Deposit taken out again")
        PAYMENT = "payment", _("Payment of an approved assignment")
        BONUS = "bonus", _("Bonus")
        PAYOUT = "payout", _("Payout of earnings")

    kind = models.CharField(max_length=10, choices=Kind)
    created_at = models.DateTimeField()
    hit = models.ForeignKey(
        Hit, null=True, on_delete=models.PROTECT, related_name="ledger_transactions"
    )
    assignment = models.ForeignKey(
        Assignment, null=True, on_delete=models.PROTECT, related_name="ledger_transactions"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["assignment"],
                condition=models.Q(kind="payment"),
                name="an_assignment_is_paid_at_most_once",
            )
        ]


class LedgerEntry(Row):
    """One side of a transaction. Only requesters' accounts have a running balance: others receive
    from several requesters at once, so their entries have no order."""

    # An index below begins with each of these.
    transaction = models.ForeignKey(
        LedgerTransaction, on_delete=models.PROTECT, related_name="entries", db_index=False
    )
    account = models.ForeignKey(
        LedgerAccount, on_delete=models.PROTECT, related_name="entries", db_index=False
    )
    amount_usd = models.DecimalField(max_digits=14, decimal_places=2)
    balance_usd = models.DecimalField(max_digits=14, decimal_places=2, null=True)

    class Meta:
        indexes = [models.Index(fields=["account", "-id"], name="ledger_entry_statement")]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(amount_usd=0), name="ledger_entry_moves_money"
            ),
            models.UniqueConstraint(
                fields=["transaction", "account"], name="one_ledger_entry_per_account"
            ),
        ]


class Deposit(Row):
    requester = models.ForeignKey(Requester, on_delete=models.PROTECT, related_name="deposits")
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    amount_usd = models.DecimalField(max_digits=12, decimal_places=2)
    # An invoice, or whatever else stands for this money and no other of the requester's.
    reference = models.CharField(max_length=200, blank=True)
    # Of the page it was entered on, where it was.
    form_token = models.CharField(max_length=64, null=True)  # noqa: DJ001 - absent is not ""
    transaction = models.OneToOneField(
        LedgerTransaction, on_delete=models.PROTECT, related_name="deposit"
    )
    reversal = models.OneToOneField(
        LedgerTransaction, null=True, on_delete=models.PROTECT, related_name="reversed_deposit"
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "reference"],
                condition=~models.Q(reference="") & models.Q(reversal=None),
                name="one_standing_deposit_per_reference",
            ),
            models.UniqueConstraint(
                fields=["requester", "form_token"], name="one_deposit_per_form_token"
            ),
            models.CheckConstraint(condition=models.Q(amount_usd__gt=0), name="a_deposit_is_money"),
        ]


class BonusPayment(Row):
    requester = models.ForeignKey(
        Requester, on_delete=models.PROTECT, related_name="bonus_payments"
    )
    assignment = models.ForeignKey(
        Assignment, on_delete=models.PROTECT, related_name="bonus_payments"
    )
    public_id = models.CharField(max_length=30, unique=True, default=new_entity_id)
    amount_usd = models.DecimalField(max_digits=12, decimal_places=2)
    fee_usd = models.DecimalField(max_digits=12, decimal_places=2)
    reason = models.TextField()
    unique_request_token = models.CharField(max_length=64, null=True)  # noqa: DJ001 - absent is not ""
    transaction = models.OneToOneField(
        LedgerTransaction, on_delete=models.PROTECT, related_name="bonus_payment"
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["requester", "unique_request_token"], name="one_bonus_per_request_token"
            ),
            models.CheckConstraint(condition=models.Q(amount_usd__gt=0), name="a_bonus_is_money"),
        ]


class PayoutBatch(Row):
    created_at = models.DateTimeField()
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    exported_at = models.DateTimeField(null=True)
    paid_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name_plural = "payout batches"


class Payout(Row):
    """One worker's part of a batch. The money leaves the earnings when the batch is made, and the
    marketplace when it is paid."""

    batch = models.ForeignKey(PayoutBatch, on_delete=models.PROTECT, related_name="payouts")
    worker = models.ForeignKey(WorkerAccount, on_delete=models.PROTECT, related_name="payouts")
    amount_usd = models.DecimalField(max_digits=14, decimal_places=2)
    paid_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["batch", "worker"], name="one_payout_per_batch"),
            models.CheckConstraint(condition=models.Q(amount_usd__gt=0), name="a_payout_is_money"),
        ]


class PayoutMethod(Row):
    worker = models.OneToOneField(
        WorkerAccount, on_delete=models.CASCADE, related_name="payout_method"
    )
    # By the name that the operator's settings had for it at the time.
    method = models.CharField(max_length=80)
    encrypted_details = models.TextField()
    # By which the same details are recognised that two accounts gave.
    details_seal = models.CharField(max_length=64, blank=True, db_index=True)
    changed_at = models.DateTimeField()


class LedgerAudit(Row):
    created_at = models.DateTimeField()
    duration_seconds = models.FloatField()
    n_problems = models.PositiveIntegerField()
    # The first of them, in sentences.
    problems = models.JSONField(default=list)

    class Meta:
        get_latest_by = "pk"
