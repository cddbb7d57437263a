from django import template
from django.conf import settings
from django.urls import reverse

register = template.Library()

# What explains the pages of a study, by the pages' names; a heading where it is part of one.
PAGES = {
    "study": "console/#the-console",
    "items": "importing/#on-the-pages",
    "protocol": "protocol/#writing-one",
    "launch": "launch/",
    "answers": "batches/#answers-come-in-by-themselves",
    "batch": "batches/",
    "batch-change": "batches/#changing-it",
    "review": "review/#the-desk",
    "review-rules": "review/#the-desk",
    "agreement": "agreement/#in-a-study",
    "annotators": "quality/#flags-of-annotators",
    "adjudication": "console/#adjudication-and-labels",
    "labels": "console/#adjudication-and-labels",
    "results": "console/#results",
    "validation": "console/#metrics-and-human-ratings",
    "scoring": "scoring/",
    "report": "reports/",
    "downloads": "console/#downloads",
    "members": "teams/",
}


@register.simple_tag
def documentation_address(page: str = "") -> str:
    """The address of a page such as `launch/`; without one, of the beginning."""
    if settings.DOCS_URL:
        return f"{settings.DOCS_URL.rstrip('/')}/{page}"
    return reverse("documentation") + page


@register.simple_tag
def help_address(stage: str) -> str:
    """What explains a page of a study; nothing where no page does."""
    page = PAGES.get(stage)
    return documentation_address(page) if page else ""
