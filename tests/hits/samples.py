"""Two small studies, one of each kind, for the tests of the worker's pages."""

from hashlib import sha256
from typing import Any

from accounts import models, teams
from annotation.access import give_to_team
from annotation.models import Candidate, Item, Picture, Question, Study
from tests.annotation.studies import rating_study

SYSTEMS = ["transparent-llama", "gpt-neo-ft", "retrieval-bm25", "human-gold"]
CONTEXT = (
    "A: I have finally booked the train to Lisbon.\n"
    "B: Really? I thought you were afraid of long journeys.\n"
    "A: I was, but my sister lives there now & I miss her."
)
RESPONSES = [
    "That is lovely. How long will you stay with her?",
    "I like trains.\nI like <b>all</b> trains.",
    "",
    "Forsooth! A pilgrimage to thy sister's hearth doth warm the coldest heart, and though the "
    "road be long, each milestone shall be a verse in the song of your reunion.",
]
SHAPES = [
    '<circle cx="60" cy="60" r="{size}" fill="{colour}"/>',
    '<rect x="20" y="30" width="80" height="{size}" rx="8" fill="{colour}"/>',
    '<path d="M60 15 L105 100 L15 100 Z" fill="{colour}" stroke="#222" stroke-width="2"/>',
]
COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#888888"]


def picture_of(content: bytes, media_type: str = "image/svg+xml") -> Picture:
    digest = sha256(content).hexdigest()
    fields = {"media_type": media_type, "content": content}
    return Picture.objects.get_or_create(sha256=digest, defaults=fields)[0]


def picture(number: int) -> Picture:
    """A drawn product, different for each number."""
    shape = SHAPES[number % 3].format(size=30 + number, colour=COLOURS[number % 7])
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 120">{shape}</svg>'
    return picture_of(frame.encode())


def lab_study(owner: models.User, slug: str = "ratings", **fields: Any) -> Study:
    """A rating study of the team Lab, which has this owner."""
    study = rating_study(slug, owner=owner, **fields)
    give_to_team(study=study, team=teams.create_team(name="Lab", owner=owner), actor=owner)
    return study


def rating_item(justification: int = 0) -> Item:
    """A context with four responses, judged under two questions."""
    study = Study.objects.create(
        slug="style-transfer-pilot",
        title="Judge four responses to a conversation",
        kind=Study.Kind.RATING,
        instructions=(
            "Read the conversation, then each of the four responses.\n\n"
            "A response is appropriate if a sensible person could say it next. Do not lower it "
            "for spelling.\n\nStyle strength is how plainly the response shows its style, "
            "whether or not you like it."
        ),
        justification_min_length=justification,
    )
    ends = {"low_label": "not at all", "high_label": "entirely", "position": 0}
    wording = "Could a sensible person say this next?"
    Question.objects.create(study=study, name="appropriateness", wording=wording, **ends)
    ends = {"low_label": "no style", "high_label": "very strong style", "position": 1}
    wording = "How strongly does it show a style of its own?"
    Question.objects.create(study=study, name="style_strength", wording=wording, **ends)
    facts = {"key": "dialogue-17|ironic", "condition": "ironic", "context": CONTEXT}
    item = Item.objects.create(study=study, **facts)
    for number, (system, text) in enumerate(zip(SYSTEMS, RESPONSES, strict=True)):
        facts = {"key": f"{system}/17", "system": system, "text": text, "position": number}
        Candidate.objects.create(item=item, **facts)
    return item


def alternatives_item(justification: int = 20, products: int = 14) -> Item:
    """A target product with a pool of drawn products."""
    study = Study.objects.create(
        slug="alternatives-pilot",
        title="Which products would do instead?",
        kind=Study.Kind.ALTERNATIVES,
        instructions="Imagine that the target is sold out.",
        justification_min_length=justification,
    )
    wording = "Which of these would you accept instead of the target?"
    level = Question.Level.NOMINAL
    Question.objects.create(study=study, name="acceptable", wording=wording, level=level)
    facts = {"key": "B000TARGET", "context": "Desk lamp, brass, dimmable"}
    item = Item.objects.create(study=study, picture=picture(0), **facts)
    for number in range(products):
        text = f"Lamp {number + 1} with a rather long name & a “quoted” part"
        facts = {"key": f"B000POOL{number:02}", "system": SYSTEMS[number % 4], "position": number}
        Candidate.objects.create(item=item, text=text, picture=picture(number + 1), **facts)
    return item
