"""Pages written for Mechanical Turk, made to work here without a change by their authors."""

import re
from html import escape

EXTERNAL_HIT = re.compile(
    r"(?:https?:)?//(?:s3\.amazonaws\.com/mturk-public|mturk-public\.s3\.amazonaws\.com)"
    r"/externalHIT_v1\.js"
)
CROWD_ELEMENTS = re.compile(r"(?:https?:)?//assets\.crowd\.aws/crowd-html-elements\.js")
EXTERNAL_SUBMIT = re.compile(
    r"https?://(?:www|worker|workersandbox)\.mturk\.com/mturk/externalSubmit", re.IGNORECASE
)
# Whatever stands before a document type but a comment makes it no document type.
BEGINNING = re.compile(
    r"\ufeff?\s*(?:<!--.*?-->\s*)*(?:<!doctype[^>]*>)?", re.DOTALL | re.IGNORECASE
)


def send_here(html: str, *, external_hit: str, crowd_elements: str, external_submit: str) -> str:
    """The page with Mechanical Turk's two scripts and its submit address replaced by these."""
    html = EXTERNAL_HIT.sub(lambda _: external_hit, html)
    html = CROWD_ELEMENTS.sub(lambda _: crowd_elements, html)
    return EXTERNAL_SUBMIT.sub(lambda _: external_submit, html)


def begin_with(html: str, *, script: str) -> str:
    """The page with a script of ours run before any of its own; it stays in standards mode."""
    match = BEGINNING.match(html)
    end = match.end() if match else 0
    return f'{html[:end]}<script src="{escape(script)}"></script>{html[end:]}'
