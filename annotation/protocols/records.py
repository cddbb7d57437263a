"""What a protocol says, as typed records: all that annotators see and the rules their work meets.

Every field carries its part of the JSON Schema (`documents.py`); what is left out has its default.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from annotation.protocols.fields import (
    CANDIDATE,
    ITEM,
    KINDS,
    Kind,
    boolean,
    choice,
    integer,
    labels,
    mapping,
    number,
    record,
    records,
    required_choice,
    required_number,
    required_text,
    right_value,
    text,
    text_mapping,
    texts,
)

NAME = r"^\S(.*\S)?$"
LANGUAGE = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$"
COUNTRY = r"^[A-Z]{2}$"
SCORES = (
    "The right value under each question, by name: a number, or an answer's label, such as yes."
)
FEEDBACK = "What is read of each answer once all are given, by the question's name."
DAY_SECONDS = 24 * 3600
CHECK_KINDS = ("gold", "repeat", "degraded", "instructed", "known_alternative", "known_other")
# Of an annotator, as `stats.quality.FLAGS`, which would load numpy for every protocol.
FLAG_NAMES = (
    *("failed_checks", "straight_lines", "too_fast", "copied_reasons"),
    *("machine_like", "colluding", "late_change", "unrelated", "position"),
    "contradictory_times",
)
# Kinds that are made of a candidate of the page; the others need cases.
MADE_KINDS = ("repeat", "degraded")
# Of a question that is a check itself.
QUESTION_CHECK = "question"


@dataclass(frozen=True)
class Condition:
    """On which answer to an earlier question a question appears: one of these labels, or a value
    below or above a number."""

    question: str = required_text("Name of an earlier question.", most=64)
    any_of: tuple[str, ...] = texts(
        "Labels of its answers; yes or no of a tick or a yes/no question.", most=50, length=200
    )
    below: float | None = number("Appears where the value is less.", least=-1e9, most=1e9)
    above: float | None = number("Appears where the value is more.", least=-1e9, most=1e9)


@dataclass(frozen=True)
class QuestionCheck:
    """Makes a question an attention check: it has a right answer, is asked on a share of the
    pages, about the page or one of its candidates, and is not part of the results."""

    value: float | None = right_value(
        "The right answer: a number, or an answer's label, such as yes.", least=-1e9, most=1e9
    )
    share: float = number("Of the pages, from 0 to 1.", least=0, most=1, default=0.2)
    tolerance: float | None = number("How far an answer may be off.", least=0, most=1e9)
    holds_work: bool = boolean("Whether failed ones hold work for a person.")


@dataclass(frozen=True)
class ProtocolQuestion:
    """One question. Which options it may have depends on its kind (`fields.py`)."""

    name: str = required_text(
        "Short and unique; stands in the column 'question' of every export.",
        most=64,
        pattern=NAME,
    )
    kind: str = required_choice("How it is answered.", *KINDS)
    wording: str = required_text(
        "What annotators read; may name fields of the item, as {condition}.", most=2000
    )
    title: str = text("Heading; the name, where it is left out.", most=100)
    about: str = choice("What it is asked of: each candidate, or the item once.", CANDIDATE, ITEM)
    required: bool = boolean("Whether it must be answered.", default=True)
    when: Condition | None = record("condition", "The answer on which it appears.")
    low_label: str = text("What the least value means.", most=64, least=1)
    middle_label: str = text("What the middle means.", most=64)
    high_label: str = text("What the greatest value means.", most=64, least=1)
    minimum: float | None = number("The least value; 0 on a line.", least=-1e9, most=1e9)
    maximum: float | None = number("The greatest value; 100 on a line.", least=-1e9, most=1e9)
    show_number: bool = boolean("Shows the value while answering, which biases answers.")
    level: str = choice(
        "Level of measurement; of categories ordinal where they have an order, the lowest first.",
        *("", "interval", "ordinal", "ratio"),
    )
    points: tuple[str, ...] = labels(
        "Labels of the points, low to high. The first and the last need one; a point whose label "
        "is empty is shown with its number.",
        least=2,
        most=11,
        length=64,
    )
    first: int | None = integer("Value of the first point; 1.", least=-10, most=10)
    cannot_tell: bool = boolean(
        "Offers the answer I can't tell, which is a missing value and never a number."
    )
    categories: tuple[str, ...] = texts("Labels of the categories.", least=2, most=50, length=64)
    least: int | None = integer("At least so many categories.", least=0, most=50)
    most: int | None = integer("At most so many categories.", least=1, most=50)
    yes_label: str = text("Instead of Yes.", most=64)
    no_label: str = text("Instead of No.", most=64)
    none_label: str = text("Instead of None of these would do.", most=100)
    ties: bool = boolean("Whether candidates may be equally good.")
    tie_label: str = text("Instead of Equally good.", most=64)
    whole: bool = boolean("Whole numbers only.")
    unit: str = text("Of the number.", most=32)
    least_length: int | None = integer("At least so many characters.", least=0, most=5000)
    most_length: int | None = integer("At most so many characters.", least=1, most=20_000)
    check: QuestionCheck | None = record(
        "question_check", "Makes it an attention check, which has a right answer."
    )

    @property
    def options(self) -> Kind:
        return KINDS[self.kind]

    @property
    def labels(self) -> tuple[str, ...]:
        """The answers as annotators read them: a point without a label has its number."""
        first = 1 if self.first is None else self.first
        points = (label or str(first + n) for n, label in enumerate(self.points))
        return tuple(points) or self.categories

    @property
    def heading(self) -> str:
        plain = self.title or self.name.replace("_", " ").replace("-", " ").strip()
        return plain[:1].upper() + plain[1:]


@dataclass(frozen=True)
class Example:
    """A scored example, good or bad, beside the instructions."""

    verdict: str = required_choice("Whether it is a good or a bad one.", "good", "bad")
    candidate: str = required_text("The text of the response or product.", most=4000)
    context: str = text("What it answers.", most=4000)
    scores: Mapping[str, float] = mapping(SCORES)
    explanation: str = text("Why it is scored so.", most=2000)


@dataclass(frozen=True)
class Consent:
    """What annotators are informed of, and agree to before they begin."""

    statement: str = required_text("What they agree to.", most=2000)
    information: str = text("The information sheet, in Markdown.", most=20_000)


@dataclass(frozen=True)
class Display:
    """What is shown of an item beside its candidates, and what those are called. A system's name
    never is."""

    context: bool = boolean("The dialogue, or the target's title.", default=True)
    reference: bool = boolean("The reference answer.")
    condition: bool = boolean("The item's condition, such as the style it was written in.")
    condition_label: str = text("Before the condition, such as Style.", most=64)
    candidates: str = choice("What the page calls the candidates.", "response", "product")


@dataclass(frozen=True)
class Order:
    """The order of an item's candidates."""

    policy: str = choice(
        "As imported; random for each assignment; or balanced over an item's annotators.",
        "random",
        "fixed",
        "latin_square",
    )
    seed: int = integer("From which orders are drawn.", least=0, most=2**31 - 1, default=0)


@dataclass(frozen=True)
class Reason:
    """Whether annotators say why: never, once a page, or for each choice."""

    rule: str = choice("For what a reason is asked.", "none", "page", "choice")
    least_length: int = integer(
        "At least so many characters; 0 where it is optional.", least=0, most=5000, default=0
    )
    wording: str = text("What is asked, instead of Why did you choose as you did?", most=500)


@dataclass(frozen=True)
class Time:
    """How long a page takes, and how long it may."""

    estimate_seconds: int | None = integer("Of one page.", least=1, most=DAY_SECONDS)
    allowed_seconds: int | None = integer("Until the work lapses.", least=30, most=DAY_SECONDS)


@dataclass(frozen=True)
class CheckCase:
    """One candidate with a known answer. What it shows is its text, or what another candidate
    of the study shows."""

    candidate: str = text("The text of the response or product.", most=4000)
    item: str = text("On whose page alone it may be placed, by key; else on any.", most=200)
    source_item: str = text("Key of an item whose text and picture it bears.", most=200)
    source_candidate: str = text(
        "Key of a candidate of that item, instead of the item's target.", most=200
    )
    value: float | None = right_value(
        "The right answer: a number, or an answer's label, such as yes.", least=-1e9, most=1e9
    )


@dataclass(frozen=True)
class Check:
    """Candidates with a known answer, placed among the others."""

    kind: str = required_choice("What is placed.", *CHECK_KINDS)
    share: float = number("Of the pages, from 0 to 1.", least=0, most=1, default=0.1)
    question: str = text("The question it is about; the first, where it is left out.", most=64)
    tolerance: float | None = number("How far an answer may be off.", least=0, most=1e9)
    holds_work: bool = boolean("Whether failed ones hold work for a person.")
    cases: tuple[CheckCase, ...] = records(
        "case", "What may be placed; a repeat or degraded one is made of the page.", most=500
    )


@dataclass(frozen=True)
class GradedCase:
    """A page of a qualification test."""

    candidate: str = required_text("The text of the response or product.", most=4000)
    context: str = text("What it answers.", most=4000)
    reference: str = text("The reference answer, shown beside it.", most=4000)
    scores: Mapping[str, float] = mapping(SCORES)
    explanation: str = text("Why; read once the test is handed in.", most=2000)


@dataclass(frozen=True)
class QualificationTest:
    """A test that annotators pass before they may work. Practice is one that may be taken again
    at once."""

    cases: tuple[GradedCase, ...] = records("graded_case", "In this order.", least=1, most=50)
    title: str = text(
        "What annotators know it by, such as Practice.", most=64, least=1, default="Test"
    )
    pass_percent: int = integer("Of the answers must be right.", least=1, most=100, default=80)
    tolerance_percent: int = integer(
        "Of the scale an answer may be off.", least=0, most=100, default=20
    )
    allowed_seconds: int = integer("To take it.", least=60, most=DAY_SECONDS, default=1800)
    retry_after_seconds: int | None = integer(
        "From when on it may be taken again, after it was begun; once only, where it is left out.",
        least=0,
        most=30 * DAY_SECONDS,
    )
    feedback: bool = boolean(
        "Whether annotators read which answers were right, and why.", default=True
    )


@dataclass(frozen=True)
class PracticeCandidate:
    """A candidate on a page of practice: one of the study's item by its key, or written here."""

    candidate: str = text("Key of the candidate, where the item is the study's.", most=200)
    text: str = text("The text of the response or product, where it is written here.", most=4000)
    scores: Mapping[str, float] = mapping(SCORES)
    feedback: Mapping[str, str] = text_mapping(FEEDBACK, most=1000)


@dataclass(frozen=True)
class PracticeItem:
    """A page of practice: an item of the study, which is then not judged in it, or one written
    here."""

    item: str = text("Key of the study's item.", most=200)
    context: str = text("What the candidates answer.", most=4000)
    reference: str = text("The reference answer.", most=4000)
    condition: str = text("Such as the style they were written in.", most=64)
    candidates: tuple[PracticeCandidate, ...] = records(
        "practice_candidate", "Those with right values; of an item written here all.", most=50
    )
    scores: Mapping[str, float] = mapping(f"Of questions about the item. {SCORES}")
    feedback: Mapping[str, str] = text_mapping(FEEDBACK, most=1000)


@dataclass(frozen=True)
class Practice:
    """Paid HITs with the study's own page that say, once answered, what was right and why. Who
    passes one may work; whoever does not may take another."""

    reward_usd: float = required_number("For each of its HITs.", least=0, most=100)
    items: tuple[PracticeItem, ...] = records("practice_item", "A HIT each.", least=1, most=20)
    title: str = text("Before the study's title.", most=64, least=1, default="Practice")
    pass_percent: int = integer("Of the answers must be right.", least=1, most=100, default=80)
    tolerance_percent: int = integer(
        "Of the scale an answer may be off.", least=0, most=100, default=20
    )
    attempts: int | None = integer(
        "Each at another item, from the first on; all of them, where it is left out.",
        least=1,
        most=20,
    )
    most_workers: int = integer(
        "So many may do each of its HITs, in every launch.", least=1, most=1000, default=9
    )


@dataclass(frozen=True)
class Qualifications:
    """Who may work, and how much."""

    countries: tuple[str, ...] = texts(
        "Codes of ISO 3166, such as US; anywhere, where it is left out.",
        most=249,
        length=2,
        pattern=COUNTRY,
    )
    languages: tuple[str, ...] = texts(
        "Codes of ISO 639, such as de; annotators say that they know all of them.",
        most=10,
        length=35,
        pattern=LANGUAGE,
    )
    least_approval_percent: int | None = integer("Of their earlier work.", least=0, most=100)
    least_approved_hits: int | None = integer("Of their earlier work.", least=0, most=1_000_000)
    most_hits_per_worker: int | None = integer("In this study.", least=1, most=1_000_000)
    hold_after_hits: int | None = integer(
        "Each worker's work is held after so many until someone has looked.", least=1, most=10_000
    )
    excluded_studies: tuple[str, ...] = texts(
        "Whose annotators may not take part, by slug.", most=100, length=80
    )
    tests: tuple[QualificationTest, ...] = records(
        "qualification_test", "Passed before the first page, practice too.", most=3
    )
    practice: Practice | None = record(
        "practice", "Paid practice on the study's own page, passed before the first page."
    )


@dataclass(frozen=True)
class Completion:
    """What done means."""

    assignments_per_item: int = integer("Annotators of each item.", least=1, most=1000, default=3)
    second_round_share: float = number(
        "Of the items, from 0 to 1, judged once more by other annotators.",
        least=0,
        most=1,
        default=0.0,
    )


@dataclass(frozen=True)
class Pairs:
    """Annotators compare two candidates of an item at a time: each pair is an item of its own."""

    design: str = choice(
        "Every pair of each item, or some pairs of each, equally often over the items.",
        "all",
        "balanced",
    )
    per_item: int = integer("Pairs of each item, if balanced.", least=1, most=10, default=1)
    seed: int = integer("From which pairs are drawn.", least=0, most=2**31 - 1, default=0)


@dataclass(frozen=True)
class ProtocolDocument:
    """A whole protocol."""

    questions: tuple[ProtocolQuestion, ...] = records(
        "question", "In this order.", least=1, most=50
    )
    title: str = text("What annotators see first.", most=128)
    language: str = text("Of the texts, as BCP 47 has it.", most=35, default="en", pattern=LANGUAGE)
    direction: str = choice("In which the texts are written.", "ltr", "rtl")
    instructions: str = text("In Markdown.", most=20_000)
    examples: tuple[Example, ...] = records("example", "Scored examples.", most=20)
    consent: Consent | None = record("consent", "Asked before the first page.")
    display: Display = record("display", "What is shown of an item.", factory=Display)
    order: Order = record("order", "Of the candidates.", factory=Order)
    pairs: Pairs | None = record("pairs", "Compares pairs instead of whole items.")
    reason: Reason = record("reason", "Whether annotators say why.", factory=Reason)
    comment: bool = boolean("A box for comments to the requester.", default=True)
    time: Time = record("time", "How long it takes.", factory=Time)
    checks: tuple[Check, ...] = records("check", "Quality checks.", most=20)
    holding_flags: tuple[str, ...] = texts(
        "Flags of an annotator that hold work for a person, so that no rule approves it.",
        most=len(FLAG_NAMES),
        length=32,
        enum=list(FLAG_NAMES),
    )
    qualifications: Qualifications = record(
        "qualifications", "Who may work.", factory=Qualifications
    )
    completion: Completion = record("completion", "What done means.", factory=Completion)

    def question(self, name: str) -> ProtocolQuestion | None:
        return next((each for each in self.questions if each.name == name), None)

    @property
    def study_questions(self) -> tuple[ProtocolQuestion, ...]:
        """The questions whose answers are results: all that are not attention checks."""
        return tuple(each for each in self.questions if each.check is None)

    @property
    def all_checks(self) -> tuple[Check, ...]:
        """`checks`, then the questions that are checks, each as a `Check`. An index is the number
        of a placed check."""
        asked = (
            Check(
                kind=QUESTION_CHECK,
                share=question.check.share,
                question=question.name,
                tolerance=question.check.tolerance,
                holds_work=question.check.holds_work,
                cases=(CheckCase(value=question.check.value),),
            )
            for question in self.questions
            if question.check is not None
        )
        return (*self.checks, *asked)
