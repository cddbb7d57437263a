"""The code of each outcome: random, one a study, stored when the study is opened."""

import secrets

from marketplace.models import Outcome, OutcomeCode, RecruitedStudy

# Without letters and digits that are taken for each other.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


def create_codes(study: RecruitedStudy, *, completed: str = "") -> None:
    """A code for every outcome; that of completion may be the requester's own."""
    codes = {outcome: new_code() for outcome in Outcome}
    if completed:
        codes[Outcome.COMPLETED] = completed
    OutcomeCode.objects.bulk_create(
        OutcomeCode(study=study, outcome=outcome, code=code) for outcome, code in codes.items()
    )


def code_of(study: RecruitedStudy, outcome: str) -> str:
    """The study's code for this outcome."""
    return OutcomeCode.objects.get(study=study, outcome=outcome).code


def new_code() -> str:
    """Nothing that anybody could guess."""
    return "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
