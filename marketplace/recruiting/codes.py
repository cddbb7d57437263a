"""The code of each outcome: random, one a study, stored when the study is opened."""

import secrets

from marketplace.models import Outcome, OutcomeCode, RecruitedStudy

# Without letters and digits that are taken for each other.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


# What is decided here. Whether attention checks were failed shows only in answers that are read
# elsewhere, after the participant has gone back with a code; a follow-up is a study of its own.
DECIDED = (
    Outcome.COMPLETED,
    Outcome.NO_CONSENT,
    Outcome.SCREENED_OUT,
    Outcome.NO_MORE_ITEMS,
)


def create_codes(
    study: RecruitedStudy,
    *,
    completed: str = "",
    redirect_url: str = "",
    is_for_completed: bool = False,
) -> None:
    """A code for every outcome that may come; that of completion may be the requester's own. The
    address to go back to is that of every outcome, or of completion alone."""
    outcomes = [*DECIDED, *([Outcome.INCOMPATIBLE_DEVICE] if study.devices else [])]
    codes = {outcome: new_code() for outcome in outcomes}
    if completed:
        codes[Outcome.COMPLETED] = completed
    OutcomeCode.objects.bulk_create(
        OutcomeCode(
            study=study,
            outcome=outcome,
            code=code,
            redirect_url="" if is_for_completed and outcome != Outcome.COMPLETED else redirect_url,
        )
        for outcome, code in codes.items()
    )


def code_of(study: RecruitedStudy, outcome: str) -> str:
    """The study's code for this outcome."""
    return OutcomeCode.objects.get(study=study, outcome=outcome).code


def new_code() -> str:
    """Nothing that anybody could guess."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
