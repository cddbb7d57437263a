from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, MarketplaceError, NameTaken
from marketplace.models import PaidBy, Requester, WorkerAccount
from marketplace.money import ledger
from marketplace.money.deposits import deposit
from marketplace.people.access_keys import IssuedKey, create_key
from marketplace.users import User

# Letters and signs of which nothing is seen, though Python prints them.
BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


@transaction.atomic
def issue_access_key(
    *, name: str, display_name: str = "", deposit_usd: Decimal | None = None
) -> IssuedKey:
    """A key for the requester of this name, who is enrolled if unknown."""
    now = clock.now()
    check_name(name)
    requester, _ = Requester.objects.get_or_create(name=name, defaults={"created_at": now})
    # Here, so that no page that shows the balance has to open the account.
    ledger.available_account(requester)
    if display_name:
        check_name(display_name)
        requester.display_name = display_name
        requester.save(update_fields=["display_name"])
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
    user = User.objects.filter(username=username).first()
    if user is None:
        raise MarketplaceError(f"There is no user named {username!r}.")
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
    if not password:
        raise MarketplaceError("A worker needs a password: nobody can sign in without one.")
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
    worker = WorkerAccount.objects.filter(worker_id=worker_id).first()
    if worker is None:
        raise InvalidParameter(f"WorkerId is invalid: there is no worker {worker_id}.")
    return worker


def check_name(name: str) -> None:
    """Raise MarketplaceError if no requester can have this name."""
    is_visible = name.isprintable() and not BLANK & set(name)
    if not name.strip() or len(name) > 150 or not is_visible:
        raise MarketplaceError(
            "A requester's name has 1 to 150 characters, all of them visible.", code="invalid_name"
        )
