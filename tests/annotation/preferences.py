"""A study of preferences between two systems, whose candidates are shown in different orders."""

from annotation.models import Study, Submission
from annotation.protocols.records import Order, ProtocolDocument, ProtocolQuestion
from annotation.protocols.versions import freeze, save_draft
from tests.annotation.studies import rate, rating_study


def preferences(n_items: int = 10, policy: str = "latin_square", slug: str = "shown") -> Study:
    study = rating_study(slug, n_items=n_items, questions=())
    question = ProtocolQuestion(name="better", kind="preference", wording="Which is better?")
    document = ProtocolDocument(title="T", questions=(question,), order=Order(policy=policy))
    save_draft(study=study, document=document)
    freeze(study=study)
    return study


def prefer(study: Study, person: str, choices: list[tuple[str, str]]) -> None:
    """For each item, which candidate is shown first and which is chosen."""
    for number, (first, chosen) in enumerate(choices):
        second = "beta" if first == "alpha" else "alpha"
        values = {key: float(key == chosen) for key in (first, second)}
        rate(study, person, f"d{number}", values, question="better")
    Submission.objects.filter(item__study=study).update(protocol=study.protocols.get())


def turns(n: int) -> list[str]:
    return ["alpha" if number % 2 else "beta" for number in range(n)]
