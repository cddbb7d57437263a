import base64
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from encryption import decrypt, encrypt
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import (
    AccessKeyDoesNotExist,
    InvalidParameter,
    MarketplaceError,
    NameTaken,
    TooManyKeys,
    first_or_raise,
    require,
)
from marketplace.models import AccessKey, AuditEntry, PaidBy, Requester, WorkerAccount
from marketplace.money import ledger
from marketplace.money.transfers import deposit
from marketplace.users import User

# Secret access keys.
#
# SigV4 needs the secret itself to check a signature, so a hash of it won't do: it is random, and
# encrypted under ENCRYPTION_KEYS beside its access key. Whoever copies the database, or learns
# SECRET_KEY, learns no secret. A single key is ended by setting `AccessKey.revoked_at`.

KEY_BYTES = 30  # 40 characters, as Amazon's have
NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class IssuedKey:
    requester: Requester
    access_key_id: str
    secret_access_key: str


def create_key(*, requester: Requester, label: str = "", at: datetime) -> IssuedKey:
    secret = secrets.token_urlsafe(KEY_BYTES)
    return IssuedKey(
        requester,
        AccessKey.objects.create(
            requester=requester, label=label, created_at=at, encrypted_secret=encrypt(secret)
        ).access_key_id,
        secret,
    )


def find_active_key(access_key_id: str) -> AccessKey | None:
    if "\x00" in access_key_id:  # which no database text has
        return None
    return (
        AccessKey.objects.select_related("requester")
        .filter(access_key_id=access_key_id, revoked_at=None)
        .first()
    )


def note_use(key: AccessKey, *, now: datetime) -> None:
    # To the minute, so that not every call writes.
    if key.last_used_at is None or key.last_used_at < now - NOTED_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)


MOST_KEYS = 20


@transaction.atomic
def issue_key(*, requester: Requester, label: str, user: User | None) -> IssuedKey:
    Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
    require(
        AccessKey.objects.filter(requester=requester, revoked_at=None).count() < MOST_KEYS,
        TooManyKeys(f"A requester has at most {MOST_KEYS} keys: revoke one first."),
    )
    key = create_key(requester=requester, label=label, at=clock.now())
    detail = {"is_of_a_user": user is not None}  # which stays known when the user is deleted
    note("key.issue", subject=key.access_key_id, user=user, requester=requester, detail=detail)
    return key


@transaction.atomic
def revoke_key(*, requester: Requester, access_key_id: str, user: User | None) -> None:
    """Revoke a key; repeating it changes nothing."""
    mine = AccessKey.objects.filter(requester=requester, access_key_id=access_key_id)
    require(mine.exists(), AccessKeyDoesNotExist(access_key_id))
    if mine.filter(revoked_at=None).update(revoked_at=clock.now()):
        note("key.revoke", subject=access_key_id, user=user, requester=requester)


def is_owners(key: AccessKey) -> bool:
    """Whether the key may read who participants are: an owner issued it, or the operator or an
    enrolling site did."""
    issue = AuditEntry.objects.filter(action="key.issue", subject=key.access_key_id).first()
    if issue is None:  # of before keys were written down
        return True
    if issue.user_id is None:
        # Of before it was written down: people name their keys, operators' programs do not.
        return not issue.detail.get("is_of_a_user", bool(key.label))
    return key.requester.owners.filter(pk=issue.user_id).exists()


# What a requester's webhooks are signed with: made at first need, stored encrypted.

PREFIX = "whsec_"
SECRET_BYTES = 32


def webhook_secret(requester: Requester, *, renew: bool = False) -> str:
    if requester.encrypted_webhook_secret and not renew:
        return decrypt(requester.encrypted_webhook_secret)
    return _make(requester, renew=renew)


@transaction.atomic
def _make(requester: Requester, *, renew: bool) -> str:
    row = Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
    if row.encrypted_webhook_secret and not renew:
        return decrypt(row.encrypted_webhook_secret)
    secret = PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()
    row.save_values(encrypted_webhook_secret=encrypt(secret))
    return secret


# Letters and signs of which nothing is seen, though Python prints them.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


@transaction.atomic
def issue_access_key(
    *, name: str, display_name: str = "", deposit_usd: Decimal | None = None
) -> IssuedKey:
    now = clock.now()
    check_name(name)
    requester, _ = Requester.objects.get_or_create(name=name, defaults={"created_at": now})
    # Here, so that no page that shows the balance has to open the account.
    ledger.available_account(requester)
    if display_name:
        check_name(display_name)
        requester.save_values(display_name=display_name)
    if deposit_usd is not None:
        deposit(requester=requester, amount_usd=deposit_usd)
    key = create_key(requester=requester, at=now)
    note("key.issue", subject=key.access_key_id, requester=requester)
    return key


@transaction.atomic
def enrol_requester(*, user: User, name: str) -> Requester:
    check_name(name)
    try:
        with transaction.atomic():
            requester = Requester.objects.create(name=name, created_at=clock.now())
    except IntegrityError as error:
        raise NameTaken(f"There is a requester named {name!r} already.") from error
    ledger.available_account(requester)
    requester.users.add(user)
    requester.owners.add(user)
    note("requester.sign_up", subject=requester.public_id, user=user, requester=requester)
    return requester


@transaction.atomic
def let_act_for(*, requester: Requester, username: str, is_owner: bool = False) -> None:
    """Let a user act for the requester. The first one is an owner, too."""
    user = first_or_raise(
        User.objects.filter(username=username),
        MarketplaceError(f"There is no user named {username!r}."),
    )
    requester.users.add(user)
    is_owner = is_owner or not requester.owners.exists()
    if is_owner:
        requester.owners.add(user)
    note(
        "requester.add_user",
        subject=requester.public_id,
        requester=requester,
        detail={"username": username, "is_owner": is_owner},
    )


def create_worker(*, username: str, password: str) -> WorkerAccount:
    require(
        password, MarketplaceError("A worker needs a password: nobody can sign in without one.")
    )
    try:
        with transaction.atomic():
            user = User(username=username)
            user.set_password(password)
            user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
            user.save()
            return open_worker_account(user=user)
    except ValidationError as error:
        raise MarketplaceError(" ".join(error.messages)) from error
    except IntegrityError as error:
        raise NameTaken(f"There is a user named {username!r} already.") from error


@transaction.atomic
def open_worker_account(*, user: User, paid_by: str = PaidBy.LEDGER) -> WorkerAccount:
    worker = WorkerAccount(user=user, created_at=clock.now(), paid_by=paid_by)
    if paid_by == PaidBy.RECRUITER:
        worker.payee_id = None
    worker.save(force_insert=True)
    if paid_by == PaidBy.LEDGER:
        ledger.earnings_account(worker)
    return worker


def find_worker(worker_id: str) -> WorkerAccount:
    return first_or_raise(
        WorkerAccount.objects.filter(worker_id=worker_id),
        InvalidParameter(f"WorkerId is invalid: there is no worker {worker_id}."),
    )


def check_name(name: str) -> None:
    require(
        name.strip() and len(name) <= 150 and name.isprintable() and not BLANK & set(name),
        MarketplaceError(
            "A requester's name has 1 to 150 characters, all of them visible.", code="invalid_name"
        ),
    )
