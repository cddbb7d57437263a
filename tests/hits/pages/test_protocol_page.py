import dataclasses
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import lxml.html
import pytest
from django.template.loader import render_to_string
from django.test import Client
from django.urls import reverse
from django.utils.html import escape

from accounts.models import User
from annotation.models import Candidate, PlacedCheck, Study
from annotation.pages.import_forms import TEMPLATES, purpose_of, title_of as template_title
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.fields import KINDS
from annotation.protocols.records import (
    Check,
    CheckCase,
    Condition,
    Consent,
    Example,
    GradedCase,
    Practice,
    ProtocolDocument,
    ProtocolQuestion,
    Qualifications,
    QualificationTest,
)
from annotation.protocols.templates import read_protocol, template_names, write_yaml
from annotation.protocols.validation import document_faults
from annotation.protocols.versions import current_document, newest_version, save_draft
from hits.pages import admission, field_labels, sections
from hits.pages.questionnaire import (
    change_questions,
    document_of,
    field_of,
    title_of,
    unread_numbers,
)
from tests.annotation.studies import rating_study, ticked_study
from tests.codes import codes_on, message_codes
from tests.console.pages import words_of

pytestmark = pytest.mark.django_db

FORM = {
    **{"title": "Rate", "language": "de", "direction": "ltr"},
    "instructions": "Read **all**.\r\nThen rate.",
    **{"n_questions": "2", "q0-name": "fit", "q0-kind": "line", "q0-about": "candidate"},
    **{"q0-wording": "How well does it fit?", "q0-maximum": "50", "q0-required": "on"},
    **{"q0-low_label": "not at all", "q0-high_label": "wholly"},
    "q0-points": "left over from another kind",
    **{"q1-name": "why", "q1-kind": "long_text", "q1-wording": "Why?", "q1-about": "candidate"},
    **{"q1-when-question": "fit", "q1-when-below": "20", "q1-least_length": "10"},
    **{"consent-statement": "I agree.", "comment": "on"},
    **{"display-condition": "on", "display-condition_label": "Style"},
    **{"order-policy": "latin_square", "order-seed": "7"},
    **{"reason-rule": "page", "reason-least_length": "5"},
    **{"qualifications-countries": "US, GB", "qualifications-hold_after_hits": "10"},
    **{"completion-assignments_per_item": "3", "completion-second_round_percent": "10"},
}


@pytest.fixture
def study(researcher: User) -> Study:
    return rating_study(owner=researcher)


def address(name: str, study: Study) -> str:
    return reverse(f"console:{name}", args=[study.slug])


def show(browser: Client, study: Study, **query: Any) -> Any:
    return browser.get(address("protocol", study), query)


def faults_on(answer: Any) -> dict[str, str]:
    return {one["field"]: str(one["text"]) for one in answer.context["view"].field_faults}


def tree(answer: Any) -> Any:
    return lxml.html.fromstring(answer.content.decode())


def test_the_form_is_saved_as_a_draft_with_only_its_kinds_options(rosa, study):
    answer = rosa.post(address("protocol-save", study), FORM, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    document = current_document(study)
    fit, why = document.questions
    assert (fit.kind, fit.maximum, fit.low_label, fit.points) == ("line", 50, "not at all", ())
    assert (why.when.question, why.when.below, why.required) == ("fit", 20, False)
    assert document.instructions == "Read **all**.\nThen rate."
    assert (document.order.policy, document.order.seed) == ("latin_square", 7)
    assert document.qualifications.countries == ("US", "GB")
    assert document.qualifications.hold_after_hits == 10
    assert document.completion.second_round_share == 0.1
    assert document.consent is not None
    assert not document.display.context  # its box is not ticked


def test_characters_that_no_database_keeps_are_replaced(rosa, study):
    typed = FORM | {"title": "Rate\0", "consent-information": "\0", "q0-wording": "How\0?"}
    assert rosa.post(reverse("console:protocol-save", args=[study.slug]), typed).status_code < 400
    document = current_document(study)
    assert (document.title, document.consent.information) == ("Rate\ufffd", "\ufffd")
    assert document.questions[0].wording == "How\ufffd?"
    read = read_document({"title": "\ud800 and \udc00", "instructions": "\ud83d\ude00"})
    assert (read.title, read.instructions) == ("\ufffd and \ufffd", "\U0001f600")


def test_checks_of_the_yaml_go_through_the_form_without_a_loss(study):
    before = replace(read_protocol("alternatives"), checks=(Check(kind="gold", share=0.2),))
    assert document_of(FORM, before).checks == before.checks  # what has no field stays
    many = tuple(CheckCase(candidate=f"case {n}\n and more", value=n % 7) for n in range(70))
    source = CheckCase(item="a", source_item="b", source_candidate="c", value=0)
    checks = (
        Check(kind="gold", share=1 / 3, tolerance=0.1, holds_work=True, cases=many),
        Check(kind="known_other", question="no longer there", cases=(source,)),
        Check(kind="degraded", share=0.07),
    )
    before = replace(read_protocol("style_ratings"), checks=checks, holding_flags=("colluding",))
    view = sections.ProtocolView(study, None, before)
    rows = {"view": view, "may_edit": True, "document": before}
    name = "hits/protocol/_check.html"
    page = "".join(render_to_string(name, rows | {"row": row}) for row in view.checks)
    form = lxml.html.fromstring(f"<form>{page}</form>")
    fields = {name: value.removeprefix("\n") for name, value in form.form_values()}
    boxes = {"n_checks": str(len(view.checks)), "holding-colluding": "on"}
    after = document_of(FORM | boxes | fields, before)
    assert (after.checks, after.holding_flags) == (checks, ("colluding",))
    assert "c0-case69-candidate" not in fields  # it has no field, and stays


def test_checks_are_added_filled_in_and_removed(rosa, study):
    save = address("protocol-save", study)
    answer = rosa.post(save, {**FORM, "n_checks": "0", "action": "add-check"})
    assert answer.headers["Location"].endswith("?check=0#check-0")
    assert "c0-case0-candidate" in faults_on(show(rosa, study))
    typed = {
        **FORM,
        **{"n_checks": "1", "c0-kind": "gold", "c0-share": "25", "c0-n_cases": "2"},
        **{"c0-case0-candidate": "No.", "c0-case0-value": "99", "c0-tolerance": "few"},
        "holding-too_fast": "on",
    }
    answer = rosa.post(save, typed, headers={"HX-Request": "true"})
    faults = faults_on(answer)
    assert {"c0-case0-value", "c0-tolerance"} <= {*faults}
    assert re.findall(r"\d+", faults["c0-case0-value"]) == ["1", "1", "99", "0", "50"]
    assert answer.context["view"].unread == ["c0-tolerance"]
    assert 'data-field="c0-tolerance"' in answer.content.decode()
    document = current_document(study)
    case = CheckCase(candidate="No.", value=99)
    assert document.checks == (Check(kind="gold", share=0.25, cases=(case,)),)
    assert document.holding_flags == ("too_fast",)
    rosa.post(save, {**typed, "action": "remove-case:0.0"})
    assert current_document(study).checks[0].cases == ()
    rosa.post(save, {**typed, "action": "remove-check:0"})
    assert current_document(study).checks == ()


def test_the_preview_has_a_check_and_only_the_researcher_is_informed_where(rosa, study):
    case = CheckCase(candidate="I like trains.", value=5)
    checks = (Check(kind="gold", cases=(case,)), Check(kind="repeat"))
    save_draft(study=study, document=replace(read_protocol("style_ratings"), checks=checks))
    shown = show(rosa, study, placed=0).context["placed"]
    preview = rosa.get(address("protocol-preview", study), {"placed": 0}).content.decode()
    card = next(each for each in preview.split("data-candidate=") if "I like trains." in each)
    letter = re.search('<h2 class="badge">([A-Z])</h2>', card)[1]
    assert re.search(rf"\b{letter}\b", shown["sentence"])
    assert str(title_of(checks[0])) in shown["sentence"]
    assert str(title_of(checks[0])) not in preview
    assert '"policy": "fixed"' in preview
    shown = show(rosa, study, placed=1)
    assert shown.context["placed"]["placed"].compared is not None
    assert escape(shown.context["placed"]["sentence"]) in shown.content.decode()
    assert "I like trains." not in rosa.get(address("protocol-preview", study)).content.decode()
    assert not PlacedCheck.objects.exists()


def test_a_draft_is_frozen_once_finished_and_then_copied_and_discarded(rosa, study):
    rosa.post(address("protocol-save", study), {**FORM, "q0-high_label": ""})
    assert 'data-field="q0-high_label"' in show(rosa, study).content.decode()
    rosa.post(address("protocol-freeze", study))
    assert newest_version(study).frozen_at is None
    rosa.post(address("protocol-save", study), FORM)
    rosa.post(address("protocol-freeze", study))
    frozen = newest_version(study)
    assert frozen.frozen_at is not None
    assert frozen.frozen_by is not None
    rosa.post(address("protocol-begin", study), {"source": "1"})
    assert study.protocols.count() == 2
    view = show(rosa, study, version=1).context["view"]
    assert (view.number, view.is_frozen) == (1, True)
    rosa.post(address("protocol-discard", study))
    assert newest_version(study) == frozen


def test_a_draft_is_replaced_if_a_source_is_chosen_and_that_can_be_undone(rosa, study):
    rosa.post(address("protocol-save", study), FORM)
    mine = current_document(study)
    page = show(rosa, study, tab="yaml").content.decode()
    assert re.search('<select[^>]*name="source"[^>]*><option value="">', page)
    refused = rosa.post(address("protocol-begin", study), {"source": ""}, follow=True)
    assert message_codes(refused) == ["no_protocol"]
    assert current_document(study) == mine
    for name, content in (("protocol-begin", {"source": "best_worst"}), ("protocol-discard", {})):
        rosa.post(address(name, study), content)
        assert current_document(study) != mine
        rosa.post(address("protocol-save", study), {"action": "undo"})
        assert current_document(study) == mine


def test_a_task_brings_its_questions_and_pairs_and_keeps_what_was_written(rosa, researcher):
    study = rating_study("three", owner=researcher, systems=("alpha", "beta", "gamma"))
    save = address("protocol-save", study)
    rosa.post(save, FORM)
    before = current_document(study)
    chosen = {"action": "task", "task": "pairs"}
    rosa.post(save, FORM | chosen)
    document = current_document(study)
    assert [question.kind for question in document.questions] == ["preference"]
    assert (document.title, document.consent) == (before.title, before.consent)
    assert document.qualifications == before.qualifications
    tasks = show(rosa, study).context["view"].tasks
    assert [(each["name"], each["is_chosen"]) for each in tasks.pairs] == [
        ("all", True),
        ("balanced", False),
    ]
    assert study.items.count() == 9
    rosa.post(save, FORM | chosen | {"pairs": "balanced"})
    assert (current_document(study).pairs.design, study.items.count()) == ("balanced", 3)
    for _press in range(2):
        rosa.post(save, {"action": "undo"})
    assert current_document(study) == before
    assert study.items.first().candidates.count() == 3
    assert {
        each["task"].name
        for each in show(rosa, study).context["view"].tasks.rows
        if each["problem"]
    } == {"select"}


def opened(browser: Client, study: Study) -> dict[str, str]:
    page = show(browser, study).content.decode()
    value = r'name="%s" value="([0-9a-f]*)"'
    return {name: re.search(value % name, page)[1] for name in ("seen", "writer")}


def test_of_two_open_pages_the_later_saves_nothing_over_the_other_unasked(rosa, study):
    rosa.post(address("protocol-save", study), FORM)
    first, second = opened(rosa, study), opened(rosa, study)
    heard = {"HX-Request": "true"}
    save = address("protocol-save", study)
    rosa.post(save, FORM | first | {"title": "Mine"}, headers=heard)
    # The same page saves again, though it has not heard yet that it saved.
    rosa.post(save, FORM | first | {"title": "Mine, too"}, headers=heard)
    refused = rosa.post(save, FORM | second | {"title": "Theirs"}, headers=heard)
    assert codes_on(refused.content.decode()) == ["draft_changed"]
    assert current_document(study).title == "Mine, too"
    frozen = rosa.post(address("protocol-freeze", study), second, follow=True)
    assert message_codes(frozen) == ["draft_changed"]
    assert newest_version(study).frozen_at is None
    rosa.post(save, FORM | second | {"title": "Theirs", "overwrite": "1"})
    assert current_document(study).title == "Theirs"
    rosa.post(save, opened(rosa, study) | {"action": "undo"})
    assert current_document(study).title == "Mine, too"


def test_yaml_of_a_page_that_is_out_of_date_or_has_a_fault_is_kept_and_not_saved(rosa, study):
    rosa.post(address("protocol-save", study), FORM)
    before = opened(rosa, study)
    rosa.post(address("protocol-save", study), FORM | opened(rosa, study) | {"title": "Mine"})
    text = write_yaml(read_protocol("preference"))
    page = rosa.post(address("protocol-yaml", study), before | {"yaml": text}).content.decode()
    assert codes_on(page) == ["draft_changed"]
    assert escape(text.splitlines()[0]) in page
    assert current_document(study).title == "Mine"
    crlf = text.replace("\n", "\r\n")
    rosa.post(address("protocol-yaml", study), before | {"yaml": crlf, "overwrite": "1"})
    assert current_document(study) == read_protocol("preference")
    wrong = rosa.post(address("protocol-yaml", study), {"yaml": text + "colour: red\n"})
    assert [fault.path for fault in wrong.context["yaml_faults"]] == [("colour",)]
    assert "colour: red" in wrong.content.decode()
    assert current_document(study) == read_protocol("preference")


def test_the_preview_is_the_workers_page_in_a_sandbox(rosa, study):
    save_draft(study=study, document=read_protocol("style_ratings"))
    Candidate.objects.update(system="hidden-system")
    answer = rosa.get(address("protocol-preview", study))
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"
    page = answer.content.decode()
    assert read_protocol("style_ratings").questions[0].wording in page
    assert "hidden-system" not in page
    assert "frame-src 'self'" in show(rosa, study).headers["Content-Security-Policy"]


def test_buttons_move_copy_add_and_remove_questions():
    document = document_of(FORM, read_protocol("preference"))
    for action, names in (
        ("up:1", ["why", "fit"]),
        ("down:0", ["why", "fit"]),
        ("down:1", ["fit", "why"]),
        ("remove:0", ["why"]),
        ("copy:0", ["fit", "fit_3", "why"]),
        ("add:line", ["fit", "why", "slider"]),
        ("show:1", ["fit", "why"]),
    ):
        changed, _index = change_questions(document, action)
        assert [question.name for question in changed.questions] == names, action
    for template, about in (("preference", "item"), ("style_ratings", "candidate")):
        changed, _index = change_questions(read_protocol(template), "add:long_text")
        assert changed.questions[-1].about == about


def test_a_fault_names_the_field_it_is_about():
    for path, field in (
        (("title",), "title"),
        (("questions", 1, "low_label"), "q1-low_label"),
        (("questions", 1, "when", "any_of", 0), "q1-when-any_of"),
        (("examples", 0, "scores", "fit"), "e0-score-fit"),
        (("reason", "rule"), "reason-rule"),
        (("checks", 1, "cases", 2, "value"), "c1-case2-value"),
        (("checks", 1, "cases", 2), "c1-case2-candidate"),
        (("checks", 0, "share"), "c0-share"),
        (("questions",), "add-question"),
    ):
        assert field_of(path) == field


def every_path(document: ProtocolDocument) -> list[tuple[Any, ...]]:
    records: list[tuple[tuple[Any, ...], Any]] = [((), document)]
    paths = []
    for path, record in records:
        for one in dataclasses.fields(record):
            value, inner = getattr(record, one.name), (*path, one.name)
            if dataclasses.is_dataclass(value):
                records.append((inner, value))
            elif isinstance(value, tuple) and value and dataclasses.is_dataclass(value[0]):
                records += [((*inner, index), each) for index, each in enumerate(value)]
            elif isinstance(value, Mapping):
                paths += [(*inner, name) for name in value]
            else:
                paths.append(inner)
    return paths


def test_a_fault_is_named_by_the_label_of_its_field(rosa, study):
    scores = {"line": 50, "yes_no": 1}
    facts = {"wording": "W", "when": Condition("line", below=5)}
    test = QualificationTest((GradedCase("C", scores=scores),), title="T")
    document = replace(
        read_protocol("style_ratings"),
        questions=tuple(ProtocolQuestion(name=kind, kind=kind, **facts) for kind in KINDS),
        examples=(Example(verdict="good", candidate="C", scores=scores),),
        consent=Consent("I agree."),
        checks=(Check(kind="gold", cases=(CheckCase(candidate="C", value=1),)),),
        qualifications=Qualifications(tests=(test,)),
    )
    save_draft(study=study, document=document)
    page = tree(show(rosa, study))
    labels = {one.get("for"): " ".join(one.text_content().split()) for one in page.xpath("//label")}
    seen = set()
    for path in every_path(document):
        is_group = path[-1] in ("about", "points")
        if not is_group and (label := labels.get(field_of(path))):
            assert field_labels.place_of(path).endswith(f"“{label}”"), path
            seen.add(field_of(path))
    # What is a choice beside the form, one of several boxes, or an empty row has no own fault.
    others = r"holding-|placed|source$|.*_percent$|.*case1-|e1-|.*score-|task-"
    others += r"|q.*-(about-item|labels-|point[1-9]|when-answer)"
    rest = {name for name in labels if not re.match(others + "|q.*-(about|point0)$", name)}
    assert rest - seen == {"c0-share"} - seen


def test_an_empty_line_among_categories_is_a_fault_and_stays(rosa, study):
    form = {name: value for name, value in FORM.items() if not name.startswith("q1-")}
    form |= {"n_questions": "1", "q0-kind": "category"}
    for typed, read, empty in (
        ("low\r\n\r\n\r\n\r\nhigh", ("low", "", "", "", "high"), [1, 2, 3]),
        ("\r\nlow\r\nhigh\r\n", ("", "low", "high"), [0]),
        ("low\r\nhigh\r\n \r\n", ("low", "high", ""), [2]),
        ("low\n2\n3\n4\nhigh\n", ("low", "2", "3", "4", "high"), []),
        (" \r\n\r\n", (), []),
    ):
        form["q0-categories"] = typed
        rosa.post(address("protocol-save", study), form)
        document = current_document(study)
        assert document.questions[0].categories == read
        faults = [
            f for f in document_faults(plain_document(document)) if f.path[2:3] == ("categories",)
        ]
        if read:
            empties = [(n, "empty") for n in empty]
            assert [(fault.path[3], fault.code) for fault in faults] == empties
        page = show(rosa, study)
        assert ("q0-categories" in faults_on(page)) == bool(empty or not read)
        # The form shows every line again, so saving it once more changes nothing.
        [area] = tree(page).xpath("//textarea[@name='q0-categories']")
        again = form | {"q0-categories": area.text.removeprefix("\n")}
        rosa.post(address("protocol-save", study), again)
        assert current_document(study) == document


TESTED = FORM | {
    **{"n_tests": "1", "t0-title": "Practice", "t0-pass_percent": "100", "t0-feedback": "on"},
    **{"t0-tolerance_percent": "20", "t0-allowed_seconds": "600", "t0-retry_after_seconds": "0"},
    **{"t0-n_cases": "3", "t0-case0-context": "A: Which film?"},
    **{"t0-case0-candidate": "The other\r\none.", "t0-case0-score-fit": "40"},
    **{"t0-case0-explanation": "It answers.", "t0-case2-candidate": "I like trains."},
    **{"t0-case1-candidate": " ", "t0-case1-score-fit": "10"},
}
PRACTISED = FORM | {
    **{"language": "en", "practice-n_pages": "2", "practice-title": "Practice"},
    **{"practice-reward_usd": "0.07", "practice-most_workers": "5", "practice-attempts": ""},
    **{"practice-pass_percent": "75", "practice-tolerance_percent": "10"},
    **{"p0-item": "", "p0-context": "A: Which\r\nfilm?", "p0-n_candidates": "3"},
    **{"p0-c0-text": "The other one.", "p0-c0-score-fit": "40"},
    "p0-c0-feedback-fit": "It answers\r\nwhat was asked.",
    **{"p0-c1-text": "I like trains.", "p0-c1-score-fit": "0", "p0-c2-text": " "},
    **{"p1-item": " d1 ", "p1-n_candidates": "2"},
    **{"p1-c0-candidate": "alpha", "p1-c0-score-fit": "30"},
}


def test_a_qualification_test_is_typed_into_the_form():
    before = document_of(FORM, read_protocol("style_ratings"))
    (test,) = document_of(TESTED, before).qualifications.tests
    assert (test.title, test.pass_percent, test.retry_after_seconds) == ("Practice", 100, 0)
    assert test.feedback
    answered, other = test.cases
    assert answered.candidate == "The other\none."
    assert (answered.scores, other.scores) == ({"fit": 40}, {})
    once = document_of(TESTED | {"t0-retry_after_seconds": ""}, before).qualifications.tests[0]
    assert once.retry_after_seconds is None
    assert document_of(FORM, document_of(TESTED, before)).qualifications.tests == (test,)


def test_the_right_answer_of_a_yes_or_no_is_chosen_in_words(rosa, study):
    values = {"q0-kind": "yes_no", "t0-case0-score-fit": "1", "t0-case0-reference": "This one."}
    checks = {"n_checks": "1", "c0-kind": "gold", "c0-n_cases": "1", "c0-case0-value": "0"}
    checks |= {"c0-case0-candidate": "No."}
    rosa.post(address("protocol-save", study), TESTED | values | checks)
    page = tree(show(rosa, study))
    for name, chosen in {"t0-case0-score-fit": "1", "c0-case0-value": "0"}.items():
        (field,) = page.xpath(f"//select[@name='{name}']")
        assert field.xpath("option/@value") == ["", "0", "1"]
        assert field.xpath("option[@selected]/@value") == [chosen]
    assert page.xpath("//textarea[@name='t0-case0-reference']")[0].text.strip() == "This one."
    (test,) = current_document(study).qualifications.tests
    assert (test.cases[0].scores, test.cases[0].reference) == ({"fit": 1}, "This one.")


def test_right_values_follow_a_question_that_is_renamed_while_typing():
    """The fields of a page that was not loaded again are still called by the former name."""
    shown = TESTED | {"n_examples": "1", "e0-candidate": "Yes.", "e0-score-fit": "30"}
    before = document_of(shown, read_protocol("style_ratings"))
    for name in ("fitn", "fitness", ""):
        before = document_of(shown | {"q0-was": "fit", "q0-name": name, "q1-was": "why"}, before)
        assert before.examples[0].scores == {name or "fit": 30}
        assert before.qualifications.tests[0].cases[0].scores == {name or "fit": 40}


def test_buttons_add_and_remove_tests_up_to_three_and_pages_of_practice():
    document = read_protocol("style_ratings")
    for _press in range(4):
        document, _index = admission.change_tests(document, "add-test")
    titles = [test.title for test in document.qualifications.tests]
    assert len(set(titles)) == 3
    document, _index = admission.change_tests(document, "remove-test:1")
    assert [test.title for test in document.qualifications.tests] == [titles[0], titles[2]]
    document, _index = admission.change_practice(ProtocolDocument(()), "add-practice")
    assert document.qualifications.practice is not None
    for _press in range(30):
        document, index = admission.change_practice(document, "add-page-practice")
    assert (len(document.qualifications.practice.items), index) == (20, 0)
    document, index = admission.change_practice(document, "remove-page-practice:19")
    assert (len(document.qualifications.practice.items), index) == (19, 18)
    document, _index = admission.change_practice(document, "remove-practice")
    assert document.qualifications.practice is None


FAULTS_OF_TESTS = {"t0-pass_percent": "0", "t0-case0-score-fot": "3", "t0-title": ""}
FAULTS_OF_PRACTICE = {
    **{"practice-reward_usd": "0.005", "practice-attempts": "3", "p0-c0-score-fot": "3"},
    **{"p0-c1-feedback-fat": "Nobody reads it.", "p1-item": "d99"},
}


@pytest.mark.parametrize(
    ("typed", "wrong", "others"),
    [(TESTED, FAULTS_OF_TESTS, {"t0-case1-candidate"}), (PRACTISED, FAULTS_OF_PRACTICE, set())],
)
def test_each_fault_of_tests_and_practice_stands_at_its_field(rosa, study, typed, wrong, others):
    rosa.post(address("protocol-save", study), typed | wrong)
    page = show(rosa, study)
    fields = set(re.findall(r'data-field="([tp][^"]*)"', page.content.decode()))
    assert fields == others.union(wrong)
    assert fields <= set(tree(page).xpath("//@id"))


def test_tests_and_practice_are_added_and_removed_on_the_page(rosa, study):
    save = address("protocol-save", study)
    answer = rosa.post(save, FORM | {"n_tests": "0", "action": "add-test"})
    assert answer.headers["Location"].endswith("?test=0#test-0")
    assert "t0-case0-candidate" in faults_on(show(rosa, study))
    rosa.post(save, TESTED | {"action": "show-test:0"})
    assert current_document(study).qualifications.tests[0].title == "Practice"
    rosa.post(save, TESTED | {"action": "remove-test:0"})
    assert current_document(study).qualifications.tests == ()
    answer = rosa.post(save, FORM | {"action": "add-practice"})
    assert answer.headers["Location"].endswith("?practice=0#practice-0")
    assert "p0-c0-text" in faults_on(rosa.get(answer.headers["Location"]))
    rosa.post(save, PRACTISED | {"action": "remove-page-practice:0"})
    assert [each.item for each in current_document(study).qualifications.practice.items] == ["d1"]


def test_practice_is_typed_into_the_form():
    def practice_of(data: dict[str, str]) -> Practice | None:
        return document_of(data, read_protocol("style_ratings")).qualifications.practice

    practice = practice_of(PRACTISED)
    assert (practice.reward_usd, practice.attempts, practice.most_workers) == (0.07, None, 5)
    assert (practice.pass_percent, practice.tolerance_percent) == (75, 10)
    written, stored = practice.items
    assert written.context == "A: Which\nfilm?"
    assert [each.text for each in written.candidates] == ["The other one.", "I like trains."]
    assert written.candidates[0].scores == {"fit": 40}
    assert written.candidates[0].feedback == {"fit": "It answers\nwhat was asked."}
    assert (stored.item, stored.candidates[0].candidate) == ("d1", "alpha")
    assert practice_of(PRACTISED | {"practice-attempts": "1"}).attempts == 1
    assert practice_of(PRACTISED | {"p0-scores": "3", "p0-c0-scores": "3"}) == practice
    first = practice_of(PRACTISED | {"q0-was": "fit", "q0-name": "fitness"}).items[0].candidates[0]
    assert (first.scores, list(first.feedback)) == ({"fitness": 40}, ["fitness"])
    wrong = dict.fromkeys(("practice-reward_usd", "practice-most_workers", "p0-c0-score-fit"), "x")
    assert set(unread_numbers(PRACTISED | wrong)) == set(wrong)
    # A form without a part for practice leaves it as it was.
    before = document_of(PRACTISED, read_protocol("style_ratings"))
    assert document_of(FORM, before).qualifications.practice == practice


def test_practice_that_is_stored_comes_back_from_its_fields_and_has_a_preview(rosa, study):
    rosa.post(address("protocol-save", study), PRACTISED)
    before = current_document(study)
    page = tree(show(rosa, study))
    form = page.get_element_by_id("protocol-form")
    # A browser leaves out the line end that a text begins with.
    typed = {name: text.removeprefix("\n") for name, text in form.form_values()}
    rosa.post(address("protocol-save", study), typed)
    assert current_document(study).qualifications.practice == before.qualifications.practice
    assert page.xpath("//datalist[@id='p1-keys']/option/@value") == ["alpha", "beta"]
    assert page.xpath("//datalist[@id='practice-items']/option/@value")[:2] == ["d0", "d1"]
    # The preview is the page of practice once it has no fault.
    preview = address("protocol-preview", study)
    marker = '"practice": {'
    for number, text in (("0", "I like trains."), ("1", "alpha on d1")):
        page = rosa.get(preview, {"practice": number}).content.decode()
        assert text in page
        assert marker in page
    assert marker not in rosa.get(preview, {"practice": "2"}).content.decode()
    rosa.post(address("protocol-save", study), PRACTISED | {"p0-c0-score-fit": "500"})
    assert marker not in rosa.get(preview, {"practice": "0"}).content.decode()
    assert marker in rosa.get(preview, {"practice": "1"}).content.decode()


def test_pages_offer_every_template_by_one_name_and_say_what_it_is_for(rosa, researcher):
    assert set(TEMPLATES) == set(template_names())
    assert len({template_title(name) for name in TEMPLATES}) == len(TEMPLATES)
    rating_study("rated", owner=researcher)
    ticked_study("ticked", owner=researcher)
    addresses = [reverse("console:protocol", args=[slug]) for slug in ("rated", "ticked")]
    rated, ticked = (rosa.get(one, {"tab": "yaml"}).content.decode() for one in addresses)
    for page in (rated + ticked, rosa.get(reverse("console:new-study")).content.decode()):
        for name in TEMPLATES:
            assert f'<option value="{name}">{template_title(name)}'.replace("'", "&#x27;") in page
            assert purpose_of(name) in words_of(page)
