import csv
import secrets
from collections.abc import Callable
from decimal import Decimal
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace import clock
from marketplace.exceptions import DepositSpent, DuplicateDeposit, InvalidAmount, require
from marketplace.models import AuditEntry, Deposit, LedgerAudit, PayoutBatch, Requester
from marketplace.money import ledger, transfers
from marketplace.money.amounts import CENT, parse_amount
from marketplace.notifications.delivery import deliveries, given_up_lately
from marketplace.users import User
from work.periodic import backlogs, failed_lately, is_late


class AmountField(forms.CharField):
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})

    def clean(self, value: Any) -> Decimal:
        text: str = super().clean(value)
        try:
            amount_usd = parse_amount(text)
        except InvalidAmount as error:
            raise forms.ValidationError(str(error), code=error.code) from error
        require(
            amount_usd >= CENT,
            forms.ValidationError(_("At least $%(amount)s.") % {"amount": CENT}, code="too_small"),
        )
        return amount_usd


class DepositForm(forms.Form):
    amount_usd = AmountField(label=gettext_lazy("Amount, $"))
    reference = forms.CharField(
        max_length=200,
        label=gettext_lazy("Reference"),
        help_text=gettext_lazy(
            "For the audit log, such as an invoice. Each stands for one deposit."
        ),
    )
    name = forms.CharField(label=gettext_lazy("The requester's name, once more"))
    # One per opened page: sending its form twice does a thing once.
    form_token = forms.CharField(
        max_length=64,
        required=False,
        widget=forms.HiddenInput,
        initial=partial(secrets.token_urlsafe, 16),
    )

    def __init__(self, *args: Any, requester: Requester, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.requester = requester

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        require(
            name.strip() == self.requester.name,
            forms.ValidationError(
                _("This is the page of %(name)s.") % {"name": self.requester.name},
                code="other_requester",
            ),
        )
        return name

    def deposit(self, *, user: User) -> bool:
        """Make the deposit, once per form token. False if it is refused; the form shows why."""
        values = self.cleaned_data
        try:
            transfers.deposit(
                requester=self.requester,
                amount_usd=values["amount_usd"],
                reference=values["reference"],
                form_token=values["form_token"] or None,
                user=user,
            )
        except (DuplicateDeposit, InvalidAmount) as error:
            self.add_error(None, forms.ValidationError(str(error), code=error.code))
            return False
        return True


class ReversalForm(forms.Form):
    reason = forms.CharField(max_length=200)


P = ParamSpec("P")
ROWS_PER_PAGE = 50


def operator_required(
    view: Callable[Concatenate[HttpRequest, User, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    @login_required(login_url="marketplace:requester_login")
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User) or not request.user.is_staff:
            raise PermissionDenied
        return view(request, request.user, *args, **kwargs)

    return guarded


@require_safe
@operator_required
def requesters(request: HttpRequest, user: User) -> HttpResponse:
    """All requesters with their balances.

    Access: operators.
    """
    search = request.GET.get("q", "").replace("\0", "").strip()
    page = Paginator(
        Requester.objects.filter(Q(name__icontains=search) | Q(public_id=search)).order_by("name"),
        ROWS_PER_PAGE,
    ).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [
            (
                requester,
                ledger.balance_of(ledger.available_account(requester)),
                ledger.balance_of(ledger.held_account(requester)),
            )
            for requester in page
        ],
        "search": search,
    }
    return render(request, "marketplace/operator/requesters.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@operator_required
def requester(request: HttpRequest, user: User, requester_id: str) -> HttpResponse:
    """One requester with the deposits, and a form for another; it says the requester's name back.

    Access: operators.
    """
    account = get_object_or_404(Requester, public_id=requester_id)
    form = DepositForm(request.POST if request.method == "POST" else None, requester=account)
    if form.is_valid() and form.deposit(user=user):
        amount_usd = form.cleaned_data["amount_usd"]
        text = _("$%(amount)s put into the account of %(name)s.")
        text %= {"amount": f"{amount_usd:,.2f}", "name": account.name}
        messages.success(request, text, extra_tags="deposited")
        return redirect("marketplace:operator_requester", account.public_id)
    return render(
        request,
        "marketplace/operator/requester.html",
        {
            "requester": account,
            "form": form,
            "available_usd": ledger.balance_of(ledger.available_account(account)),
            "held_usd": ledger.balance_of(ledger.held_account(account)),
            "deposits": Deposit.objects.filter(requester=account).order_by("-pk")[:ROWS_PER_PAGE],
            "entries": AuditEntry.objects.filter(requester=account).order_by("-pk")[:ROWS_PER_PAGE],
        },
    )


@require_POST
@operator_required
def reverse_deposit(
    request: HttpRequest, user: User, requester_id: str, deposit_id: str
) -> HttpResponse:
    """Take a deposit out again.

    Access: operators.
    """
    account = get_object_or_404(Requester, public_id=requester_id)
    deposit = get_object_or_404(Deposit, requester=account, public_id=deposit_id)
    form = ReversalForm(request.POST)
    if form.is_valid():
        reason = form.cleaned_data["reason"]
        try:
            transfers.reverse_deposit(deposit=deposit, reason=reason, user=user)
            text = _("$%(amount)s taken out of the account.")
            text %= {"amount": f"{deposit.amount_usd:,.2f}"}
            messages.success(request, text, extra_tags="taken_out")
        except DepositSpent as error:
            messages.error(request, str(error), extra_tags=error.code)
    else:
        text = _("Say why the deposit is taken out again.")
        messages.error(request, text, extra_tags="missing_reason")
    return redirect("marketplace:operator_requester", account.public_id)


@require_safe
@operator_required
def payout_batches(request: HttpRequest, user: User) -> HttpResponse:
    """Batches of payouts, and what has been earned since.

    Access: operators.
    """
    return render(
        request,
        "marketplace/operator/payouts.html",
        {
            "due_usd": transfers.earned_and_not_taken(),
            "page": Paginator(
                PayoutBatch.objects.annotate(
                    payouts_count=Count("payouts"),
                    unpaid_count=Count("payouts", Q(payouts__paid_at=None)),
                    total_usd=Sum("payouts__amount_usd"),
                    without_method_count=Count(
                        "payouts", Q(payouts__paid_at=None, payouts__worker__payout_method=None)
                    ),
                ).order_by("-pk"),
                ROWS_PER_PAGE,
            ).get_page(request.GET.get("page")),
        },
    )


@require_POST
@operator_required
def make_payouts(request: HttpRequest, user: User) -> HttpResponse:
    """Take all earnings into a new batch.

    Access: operators.
    """
    if transfers.make_batch(user=user) is None:
        messages.info(request, _("Nobody has anything to be paid out."), extra_tags="nothing_due")
    return redirect("marketplace:operator_payouts")


@require_POST
@operator_required
def export_payouts(request: HttpRequest, user: User, batch_id: int) -> HttpResponse:
    """A batch as CSV.

    Access: operators.
    """
    batch = get_object_or_404(PayoutBatch, pk=batch_id)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="payouts-{batch.pk}.csv"'
    csv.writer(response).writerows(transfers.export([batch]))
    transfers.note_export(batch, user=user)
    return response


@require_POST
@operator_required
def mark_payouts_paid(request: HttpRequest, user: User, batch_id: int) -> HttpResponse:
    """Note that a whole batch was paid.

    Access: operators.
    """
    batch = get_object_or_404(PayoutBatch, pk=batch_id)
    count = transfers.mark_paid(batch.payouts.all(), user=user)
    messages.success(
        request,
        ngettext(
            "%(n)d payout of batch %(batch)d is marked as paid.",
            "%(n)d payouts of batch %(batch)d are marked as paid.",
            count,
        )
        % {"n": count, "batch": batch.pk},
        extra_tags="paid",
    )
    return redirect("marketplace:operator_payouts")


@require_safe
@operator_required
def audit_log(request: HttpRequest, user: User) -> HttpResponse:
    """Who did what.

    Access: operators.
    """
    action = request.GET.get("action", "").replace("\0", "").strip()
    entries = AuditEntry.objects.select_related("user", "requester").order_by("-pk")
    if action:
        entries = entries.filter(action=action)
    return render(
        request,
        "marketplace/operator/audit.html",
        {
            "page": Paginator(entries, ROWS_PER_PAGE).get_page(request.GET.get("page")),
            "action": action,
            "actions": AuditEntry.objects.order_by("action")
            .values_list("action", flat=True)
            .distinct(),
        },
    )


# Operators' Status page: the queues, the ledger's audit, and what could not be delivered.


@require_safe
@operator_required
def status(request: HttpRequest, user: User) -> HttpResponse:
    """Whether background work gets on, the ledger balances, and messages arrive.

    Access: operators.
    """
    now = clock.now()
    return render(
        request,
        "marketplace/operator/status.html",
        {
            "is_late": is_late(now),
            "backlogs": backlogs(now),
            "failed_jobs": failed_lately(now),
            "audit": LedgerAudit.objects.order_by("pk").last(),
            "deliveries": deliveries(now),
            "given_up": given_up_lately(now),
        },
    )
