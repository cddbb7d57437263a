"""Regular expressions of QuestionForms: what they may cost when they are read and searched for."""

import subprocess
import sys
import time
from xml.sax.saxutils import quoteattr

import pytest

from marketplace.documents.constraints import MOST_PATTERN_SECONDS
from marketplace.documents.question_forms import validate_question_form
from marketplace.exceptions import InvalidQuestion
from marketplace.models import Hit
from tests.codes import refused
from tests.marketplace.conformance.refusals import turk_code
from tests.marketplace.conftest import HIT
from tests.marketplace.forms import form, free_text, question, selection
from tests.marketplace.test_form_pages import fill


def with_patterns(*expressions):
    return question("q", free_text("".join(map(pattern, expressions))))


def pattern(expression):
    return f"<AnswerFormatRegex regex={quoteattr(expression)}/>"


LARGE_PATTERNS = [
    "(?:a|b){1000000}", "(?:a|bc){1000000000}", "(ab){0000000000100000,}", "a{60000}",
    "(?:(?:a|bc){300}){300}", r"(?:\p{L}{300}){300}", "[ab]{300}" * 20, "((?:a+){200}b?){200}",
    "(?:a|b)(?#){100000}", "(?:(?:ab){99}?){99}+", "[)](?:[(]{300}){300}", "a{1,2}" * 9_000,
    "(?:a{,9}b){9000}",
]  # fmt: skip


@pytest.mark.parametrize("expression", LARGE_PATTERNS)
def test_a_pattern_that_would_be_large_once_compiled_is_refused_before(expression):
    other = f"<OtherSelection><Constraints>{pattern(expression)}</Constraints></OtherSelection>"
    for part in (with_patterns(expression), question("q", selection("a", other=other))):
        with refused(InvalidQuestion, "patterns_too_large"):
            validate_question_form(form(part))


COMMON_PATTERNS = [
    r"^\d{4}-\d{2}-\d{2}$", r"^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$", r"^[\s\S]{500,5000}$",
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", r"(?:\S+\s+){50}",
    r"^(?:\W*\w+\W*){100,300}$", r"^((\w{3,}\W+){5,}[.!?]){3,}$", r"^\p{Lu}\p{L}{2,30}$",
    r"^[A-Z]{2}\d{2}(?:[ ]?[0-9]{4}){4}(?:[ ]?[0-9]{1,2})?$", "^(?=.*[a-z])(?=.*[0-9]).{8,64}$",
]  # fmt: skip


def test_patterns_of_common_forms_are_read():
    validate_question_form(form(with_patterns(*COMMON_PATTERNS)))


PRINT_SIZE = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
COMPILE_LARGEST = """
from marketplace.documents.constraints import MOST_STATES, Pattern, count_states

for repeated in ("a", "(?:a|b)", "(a?){10}(?:(?:a|bc){100})", "(?:a[b-z]c)"):
    count = 1
    while count_states(repeated + "{%d}" % (2 * count)) <= MOST_STATES:
        count *= 2
    Pattern(repeated + "{%d}" % count, "", False).check()
Pattern("(a)?" * (MOST_STATES // 4), "", True).check()
"""


def test_the_largest_patterns_compile_within_a_few_megabytes():
    before = measure("import marketplace.documents.constraints")
    assert measure(COMPILE_LARGEST) - before < 100


def measure(program):
    """The largest size in MiB of a process of its own, which a crash ends."""
    program = f"{program}\n{PRINT_SIZE}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("(?V0V1)a", "invalid_regex"),
        (f"a{{1,{'9' * 5000}}}", "invalid_regex"),
        ("(?ix)a{1 0}", "verbose_pattern"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(expression, code):
    with refused(InvalidQuestion, code):
        validate_question_form(form(with_patterns(expression)))


def test_a_form_has_a_limited_number_of_patterns():
    parts = [question(f"q{n}", free_text(pattern("a") * 25)) for n in range(5)]
    validate_question_form(form(*parts[:4]))
    with refused(InvalidQuestion, "too_many_patterns"):
        validate_question_form(form(*parts))


def test_hits_and_tests_with_large_patterns_are_refused_when_they_are_made(mturk):
    xml = form(with_patterns("(?:a|b){1000000}"))
    assert turk_code(mturk.create_hit, **HIT | {"Question": xml}) == "XMLParseError"
    test = {"Name": "A test", "Description": "Of patterns", "QualificationTypeStatus": "Active"}
    code = turk_code(mturk.create_qualification_type, **test, Test=xml, TestDurationInSeconds=60)
    assert code == "XMLParseError"


def test_a_pattern_that_never_ends_holds_nobody_up():
    xml = form(question("q", free_text("<AnswerFormatRegex regex='^(a|a)*$'/>")))
    assert fill(xml, q=["a" * 60 + "b"]).is_valid


def test_a_form_of_before_the_limits_is_explained_to_workers(mturk, ada):
    mturk.create_hit(**HIT | {"Question": form(with_patterns("a"))})
    Hit.objects.update(question=form(with_patterns("(?:a|b){1000000}")))
    page = ada.get(f"/worker/hits/{Hit.objects.get().public_id}/")
    assert (page.status_code, page.context["code"]) == (409, "patterns_too_large")


def test_all_patterns_of_a_submission_share_their_time():
    slow = "<AnswerFormatRegex regex='(a|a)*$'/>" * 10
    questions = [question(f"q{number}", free_text(slow)) for number in range(9)]
    values = {f"q{number}": ["a" * 60 + "b"] for number in range(9)}
    began = time.thread_time()
    assert fill(form(*questions), **values).is_valid
    assert time.thread_time() - began < 3 * MOST_PATTERN_SECONDS


def test_a_slow_pattern_leaves_time_for_the_others():
    slow, other = (f"<AnswerFormatRegex regex='{each}'/>" for each in ("^(a|a)*$", "^b"))
    xml = form(question("q", free_text(slow)), question("r", free_text(other)))
    (wrong,) = fill(xml, q=["a" * 60 + "b"], r=["c"]).complaints
    assert (wrong.question.identifier, wrong.complaint.code) == ("r", "wrong_form")
