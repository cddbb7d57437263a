"""Reading QuestionFormAnswers: what a worker gave for each question."""

from defusedxml.ElementTree import fromstring

from marketplace.documents.answers import NAMESPACE

TEXTS = ("FreeText", "OtherSelectionText")


def read_answers(xml: str) -> dict[str, tuple[str, ...]]:
    """The values by question. A text joined with "|", as several values of one form field
    are, counts as several."""
    if not xml:
        return {}
    answers = {}
    for answer in fromstring(xml, forbid_dtd=True):
        identifier = answer.findtext(f"{{{NAMESPACE}}}QuestionIdentifier", "")
        chosen = [
            child.text or ""
            for child in answer
            if child.tag == f"{{{NAMESPACE}}}SelectionIdentifier"
        ]
        texts = [
            child.text or ""
            for child in answer
            if child.tag in {f"{{{NAMESPACE}}}{name}" for name in TEXTS}
        ]
        answers[identifier] = (*chosen, *(part for text in texts for part in text.split("|")))
    return answers
