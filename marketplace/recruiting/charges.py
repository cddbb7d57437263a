"""What a recruiter charged for participants, in its own currency, beside the ledger.

Publishing sets the pay of all places aside (a charge of the study); what was paid of it is a
charge for each participation that was approved there, as the recruiter's own calculator says,
fees included. Bonuses are charged where they are paid (marketplace.recruiting.intents). Both are
of the reward there: where it is raised by hand, more is set aside for each place, and whoever was
approved before is paid the rest (help of Prolific, on adjustment payments).
"""

from collections import Counter
from collections.abc import Iterable
from decimal import ROUND_UP, Decimal
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum
from django.utils.translation import gettext_lazy

from marketplace import clock
from marketplace.models import (
    ErasedSubmission,
    Intent,
    RecruitedStudy,
    RecruiterCharge,
    RecruiterConnection,
    Session,
)
from marketplace.money.amounts import CENT
from marketplace.recruiting.connections import Patience
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import Cost, PostedStudy

Kind = RecruiterCharge.Kind
MOST_REWARD = Decimal(100_000)
# As charges are stored. SQLite adds them up as floats, whose sum has fifteen digits.
SMALLEST = Decimal("0.0001")
# Of what publishing and more places set aside, participations are paid; what is left over when the
# study is stopped is free again there.
MEANINGS = {
    Kind.STUDY: gettext_lazy("set aside for its places"),
    Kind.REWARD: gettext_lazy("of what was set aside, paid for approved participations"),
    Kind.BONUS: gettext_lazy("paid in bonuses"),
    Kind.SCREEN_OUT: gettext_lazy("paid to who was screened out"),
}


def charge_rewards(connection: RecruiterConnection, recruiter: Prolific) -> int:
    n = Counter[str]()
    screened_out = Session.objects.filter(connection=connection, state=Session.State.SCREENED_OUT)

    def charge(kind: RecruiterCharge.Kind, sessions: QuerySet[Session]) -> None:
        n[kind] += _charge(connection, recruiter, kind, sessions)

    with Patience() as patience:
        patience.try_to(partial(charge, Kind.REWARD, _approved(connection)))
        patience.try_to(partial(charge, Kind.SCREEN_OUT, screened_out))
    return n.total()


def _charge(
    connection: RecruiterConnection,
    recruiter: Prolific,
    kind: RecruiterCharge.Kind,
    sessions: QuerySet[Session],
) -> int:
    n = Counter[str]()
    waiting = sessions.filter(
        ~Exists(RecruiterCharge.objects.filter(session=OuterRef("pk"), kind=kind))
    )
    erased = ErasedSubmission.objects.filter(connection=connection, uncharged=kind)
    amount = "reward" if kind == Kind.REWARD else "screen_out_reward"
    priced = RecruitedStudy.objects.exclude(**{amount: None, f"{amount}_there": None})

    def charge(study: RecruitedStudy) -> None:
        pay = study.reward_paid if kind == Kind.REWARD else study.screen_out_reward_paid
        if pay is None or (cost := recruiter.cost(pay, 1)).total <= 0:
            return
        facts = {"currency": cost.currency, "amount": cost.total, "created_at": clock.now()}
        for session in waiting.filter(study=study):
            _row, is_new = RecruiterCharge.objects.get_or_create(
                connection=connection,
                kind=kind,
                external_id=session.submission_id[:100],
                defaults=facts | {"study": study, "session": session},
            )
            n[kind] += is_new
        for one in erased.filter(study=study):
            with transaction.atomic():
                if ErasedSubmission.objects.filter(pk=one.pk, uncharged=kind).update(uncharged=""):
                    charge = RecruiterCharge(connection=connection, study=study, kind=kind, **facts)
                    charge.external_id = f"erased:submission:{one.pk}"
                    charge.save()
                    n[kind] += 1

    has_waiting = Q(pk__in=waiting.values("study")) | Q(pk__in=erased.values("study"))
    with Patience() as patience:
        for study in priced.filter(has_waiting).order_by("pk"):
            patience.try_to(partial(charge, study), key=f"{kind}-charges:{study.pk}")
    return n.total()


def follow_pay(
    study: RecruitedStudy, recruiter: Prolific, posted: PostedStudy, *, is_charged: bool
) -> None:
    """Store what the study pays at the recruiter. If it `is_charged`, charge what a changed reward
    adds."""
    pays = [pay for pay, _n in posted.screen_outs or ()]
    if len(pays) == 1 and _is_pay(pays[0]) and pays[0] != study.screen_out_reward_there:
        study.save_values(screen_out_reward_there=pays[0])
    reward = posted.reward
    if study.reward is None or reward is None or not _is_pay(reward):
        return
    if is_charged and reward != study.reward_paid:
        of_places, of_one = recruiter.cost(reward, study.places), recruiter.cost(reward, 1)
        with transaction.atomic():
            _charge_the_rest(study, Kind.STUDY, of_places)
            n_paid = study.charges.filter(kind=Kind.REWARD).exclude(external_id=_rest_of(study))
            if reward > (study.reward_paid or 0):  # who was paid more keeps it
                total = max(n_paid.count() * of_one.total, _total(study, Kind.REWARD))
                _charge_the_rest(study, Kind.REWARD, Cost(total, of_one.currency))
    if reward != study.reward_there:
        study.save_values(reward_there=reward)


def _is_pay(amount: Decimal) -> bool:
    return 0 < amount <= MOST_REWARD and amount == amount.quantize(CENT)


def _rest_of(study: RecruitedStudy) -> str:
    return f"{study.external_id}:changed"


def _charge_the_rest(study: RecruitedStudy, kind: RecruiterCharge.Kind, cost: Cost) -> None:
    """Make the charges of this kind total the cost, by one extra charge for changes."""
    charges = study.charges.filter(kind=kind)
    others = charges.exclude(external_id=_rest_of(study)).aggregate(n=Sum("amount"))["n"]
    rest = cost.total - (others or Decimal(0)).quantize(SMALLEST)
    if rest <= 0:
        charges.filter(external_id=_rest_of(study)).delete()
        return
    RecruiterCharge.objects.update_or_create(
        connection=study.connection,
        kind=kind,
        external_id=_rest_of(study),
        defaults={
            "study": study,
            "amount": rest,
            "currency": cost.currency,
            "created_at": clock.now(),
        },
    )


def committed_to(study: RecruitedStudy) -> Decimal:
    """The study's known cost. While it is open: all its places. Once it is stopped: what was paid,
    and a place's share for each participation that may still be paid."""
    set_aside = _total(study, Kind.STUDY)
    n_open = study.n_payable_there
    if study.state != RecruitedStudy.State.STOPPED or n_open is None or not study.places:
        return set_aside
    charged = RecruiterCharge.objects.filter(session=OuterRef("pk"), kind=Kind.REWARD)
    unpriced = _approved(study.connection).filter(~Exists(charged), study=study)
    erased = ErasedSubmission.objects.filter(study=study, uncharged=Kind.REWARD)
    n_open += unpriced.count() + erased.count()
    share = (set_aside / study.places).quantize(SMALLEST, rounding=ROUND_UP)
    return _total(study, Kind.REWARD) + n_open * share


def _total(study: RecruitedStudy, kind: RecruiterCharge.Kind) -> Decimal:
    total: Decimal | None = study.charges.filter(kind=kind).aggregate(n=Sum("amount"))["n"]
    return (total or Decimal(0)).quantize(SMALLEST)


def charged_to(keys: Iterable[int]) -> dict[int, dict[str, Decimal]]:
    rows = RecruiterCharge.objects.filter(study__in=keys).order_by()
    totals = rows.values_list("study", "kind").annotate(total=Sum("amount"))
    charged: dict[int, dict[str, Decimal]] = {}
    for study, kind, total in totals:
        charged.setdefault(study, {})[kind] = total.quantize(SMALLEST)
    return charged


def totals_of(study: RecruitedStudy) -> Iterable[tuple[str, Decimal, str]]:
    rows = study.charges.values_list("kind", "currency").annotate(total=Sum("amount"))
    for kind, currency, summed in rows.order_by("kind", "currency"):
        total = summed.quantize(SMALLEST)
        cents = total.quantize(CENT)
        yield str(MEANINGS[Kind(kind)]), cents if cents == total else total, currency


def _approved(connection: RecruiterConnection) -> QuerySet[Session]:
    open_ones = Intent.objects.filter(session=OuterRef("pk"), kind=Intent.Kind.APPROVE).exclude(
        state__in=[Intent.State.DONE, Intent.State.REFUSED]
    )
    approved = Session.objects.filter(connection=connection, state=Session.State.APPROVED)
    return approved.exclude(study__external_id="").filter(~Exists(open_ones))
