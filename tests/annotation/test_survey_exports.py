"""Exports of Qualtrics, SurveyMonkey, Google Forms, oTree and Prolific as studies.

`otree_*.csv` were written by otree 6.0.15 (`otree test rating 3 --export`). The others follow the
documentation: Qualtrics
(https://www.qualtrics.com/support/survey-platform/data-and-analysis-module/data/download-data/understanding-your-dataset/),
SurveyMonkey (https://help.surveymonkey.com/en/surveymonkey/analyze/exporting-results/), Google
Forms (https://support.google.com/docs/answer/139706), Prolific
(https://docs.prolific.com/api-reference/studies/export-demographic-data and
.../ai-task-builder/get-task-builder-batch-task-responses).
"""

import pytest

from annotation.exceptions import AnnotationError
from annotation.label_uploads import LabelSettings
from annotation.readers.tool_exports.surveys import SURVEY
from tests.annotation.tool_export_drafts import (
    answers_of,
    assert_counts,
    counts_of,
    read_fixture,
    ticks,
    wordings_of,
)
from tests.codes import codes_of, refused

BOXES, FIT = "What did you like?", "How well does each reply fit?"
MONKEY_BOXES = "What did you like? (Select all that apply.)"
REASONS, TRAITS = "clear friendly Other:", "clear friendly short"
FITS = "How well does each reply fit the dialogue?"


def test_qualtrics_has_three_header_rows_and_its_texts_are_the_wordings():
    draft = read_fixture("qualtrics.csv", "qualtrics")
    assert wordings_of(draft) == {
        "Q1_1": "How fluent is A?",
        "Q1_2": "How fluent is B?",
        "Q2": "Which do you prefer?",
        "Q3:accurate": "Select all that apply: accurate",
        "Q3:fluent": "Select all that apply: fluent",
    }
    assert [(each.level, each.scale_min, each.scale_max) for each in draft.questions[:2]] == [
        ("interval", 1, 5),
        ("interval", 1, 5),
    ]
    answers = answers_of(draft)
    assert set(answers) == {(SURVEY, f"R_{n}") for n in range(8)}
    assert [answers[SURVEY, f"R_{n}"]["Q1_1"] for n in range(8)] == [1, 2, 3, 4, 5, 1, 2, 3]
    expected = {"Q1_1": 2, "Q1_2": 4, "Q2": "B", "Q3:accurate": "yes", "Q3:fluent": "yes"}
    assert answers[SURVEY, "R_1"] == expected
    notes = {"qualtrics_header", "other_columns", "check_boxes", "columns_of_items"}
    assert_counts(draft, (8, 8), notes=notes)
    assert {each.seconds for each in draft.submissions} == {600}


def test_a_column_of_qualtrics_as_a_plain_table():
    columns = {"item": ("ResponseId",), "annotator": "ResponseId", "values": ("Q1_1",)}
    draft = read_fixture("qualtrics.csv", "csv", **columns)
    [question] = draft.questions
    assert (question.level, question.scale_min, question.scale_max) == ("interval", 1, 5)
    assert question.wording == "How fluent is A?"
    assert (len(draft.items), len(draft.submissions)) == (8, 8)


def test_qualtrics_boxes_in_columns_previews_and_unfinished_responses():
    draft = read_fixture("qualtrics_split.csv", "qualtrics")
    assert answers_of(draft) == {
        (SURVEY, "R_1aaaaaaaaaaaaaa"): {
            **{"Q1_1": 4, "Q1_2": 2},
            **ticks("Q2", REASONS, "clear friendly"),
        },
        (SURVEY, "R_2bbbbbbbbbbbbbb"): {
            **{"Q1_1": 5, "Q2_3_TEXT": "it is short"},
            **ticks("Q2", REASONS, "friendly Other:"),
        },
        # Nothing was ticked in a finished response, and nothing is known of an unfinished one.
        (SURVEY, "R_3cccccccccccccc"): {"Q1_1": 4, "Q1_2": 1} | ticks("Q2", REASONS),
        (SURVEY, "R_4dddddddddddddd"): {"Q1_1": 3},
    }
    notes = {"qualtrics_header", "check_boxes", "columns_of_items", "answers_without_category"}
    notes |= {"other_columns"}
    missing = {"": 5, "-99": 1}
    assert_counts(draft, (5, 4), {"not_respondent": 1}, missing=missing, notes=notes)
    assert wordings_of(draft)["Q2:clear"] == "Why? Tick all that apply: clear"


def test_a_pattern_makes_items_of_columns():
    draft = read_fixture("qualtrics_split.csv", "qualtrics", answers="{question}_{item}")
    answers = answers_of(draft)
    ratings = {key: each["Q1"] for key, each in answers.items() if "Q1" in each}
    assert ratings == {
        ("1", "R_1aaaaaaaaaaaaaa"): 4,
        ("2", "R_1aaaaaaaaaaaaaa"): 2,
        ("1", "R_2bbbbbbbbbbbbbb"): 5,
        ("1", "R_3cccccccccccccc"): 4,
        ("2", "R_3cccccccccccccc"): 1,
        ("1", "R_4dddddddddddddd"): 3,
    }
    assert answers[SURVEY, "R_1aaaaaaaaaaaaaa"]["Q2:clear"] == "yes"
    assert "columns_of_items" not in counts_of(draft)["notes"]


@pytest.mark.parametrize("answers", ["{item}", "{question}", "{question}_{item}_{other}", "Q1"])
def test_a_pattern_has_a_question_and_an_item_or_a_system(answers):
    with refused(AnnotationError, "answers_pattern"):
        read_fixture("qualtrics_split.csv", "qualtrics", answers=answers)
    assert codes_of(LabelSettings("qualtrics", answers=answers).problems()) == ["answers_pattern"]
    assert not LabelSettings("qualtrics", answers="{question}_{system}").problems()


def test_surveymonkey_has_two_header_rows_of_questions_and_options():
    draft = read_fixture("surveymonkey.csv", "surveymonkey")
    assert answers_of(draft) == {
        (SURVEY, "118000000001"): {
            "Which reply is better?": "Reply A",
            f"{FITS}: Reply A": 4,
            f"{FITS}: Reply B": 2,
            **ticks(MONKEY_BOXES, TRAITS, "clear friendly"),
        },
        (SURVEY, "118000000002"): {
            "Which reply is better?": "Reply A",
            f"{FITS}: Reply A": 5,
            f"{FITS}: Reply B": 2,
            **ticks(MONKEY_BOXES, TRAITS, "clear"),
            "Q8": "too long",
        },
        (SURVEY, "118000000003"): {
            "Which reply is better?": "Reply B",
            f"{FITS}: Reply A": 3,
            f"{FITS}: Reply B": 4,
            **ticks(MONKEY_BOXES, TRAITS, "short"),
            "Q7": "polite",
        },
    }
    notes = {"survey_monkey_header", "check_boxes", "columns_of_items", "other_columns"}
    assert_counts(draft, (4, 3), {"no_answer": 1}, missing={"": 10}, notes=notes)
    assert wordings_of(draft)["Q8"].startswith("Anything else that you want to tell us")
    items = read_fixture("surveymonkey.csv", "surveymonkey", answers="{question}: {item}")
    assert answers_of(items)["Reply B", "118000000003"] == {FITS: 4}
    assert wordings_of(items)[FITS] == FITS


def test_google_forms_with_semicolons_and_with_commas_between_ticks():
    draft = read_fixture("google_forms.csv", "google-forms", answers="{question} [{system}]")
    assert answers_of(draft) == {
        ("other", "ann@example.org"): {
            "Which reply is better?": "Reply A",
            **ticks(BOXES, "clear friendly", "clear friendly"),
        },
        ("other", "ben@example.org"): {
            "Which reply is better?": "Reply A",
            **ticks(BOXES, "clear friendly", "clear"),
            # A comma and a semicolon in words are no ticks.
            "Comments": "Good, but long; shorten it",
        },
        ("other", "cem@example.org"): {
            "Which reply is better?": "Reply B",
            **ticks(BOXES, "clear friendly"),
        },
        (SURVEY, "ann@example.org"): {f"{FIT}@Reply A": 4, f"{FIT}@Reply B": 2},
        (SURVEY, "ben@example.org"): {f"{FIT}@Reply A": 5, f"{FIT}@Reply B": 3},
        (SURVEY, "cem@example.org"): {f"{FIT}@Reply A": 3, f"{FIT}@Reply B": 4},
    }
    notes = {"check_boxes", "other_columns", "answers_without_category"}
    assert_counts(draft, (3, 3), missing={"": 2}, notes=notes)
    sheet = read_fixture("google_forms_sheet.csv", "google-forms")
    assert answers_of(sheet)[SURVEY, "respondent 1"] == {
        # One option that has a comma.
        "Which reply is better?": "No, neither",
        **ticks(BOXES, TRAITS, "clear friendly"),
    }
    assert counts_of(sheet)["rows"] == (3, 3)


def test_otree_tables_of_all_apps_and_of_one_have_the_same_answers():
    wide = read_fixture("otree_wide.csv", "otree")
    app = read_fixture("otree_app.csv", "otree")
    expected = {
        ("1", "dnmcnwf2"): {"fluency": 2, "verdict": "good", "comment": "clear"},
        ("2", "dnmcnwf2"): {"fluency": 3, "verdict": "good", "comment": "clear"},
        ("1", "6dtbvmnj"): {"fluency": 3, "verdict": "good"},
        ("2", "6dtbvmnj"): {"fluency": 4, "verdict": "good"},
        ("1", "nevgorny"): {"fluency": 4, "verdict": "bad"},
        ("2", "nevgorny"): {"fluency": 5, "verdict": "bad"},
    }
    assert answers_of(app) == expected
    found = answers_of(wide)
    assert {
        (item.removeprefix("rating."), who): each
        for (item, who), each in found.items()
        if item.startswith("rating.")
    } == expected
    assert found["after.1", "6dtbvmnj"] == {"hard": 1}
    # oTree's bots answered.
    for draft, rows in ((wide, (3, 3)), (app, (6, 6))):
        assert_counts(draft, rows, missing={"": 4}, notes={"simulated", "other_columns"})
    assert all(each.is_simulated for each in (*wide.submissions, *app.submissions))
    assert wordings_of(app) == {"fluency": "fluency", "verdict": "verdict", "comment": "comment"}


def test_prolific_submissions_are_participants_with_a_status():
    draft = read_fixture("prolific_submissions.csv", "prolific")
    answers = answers_of(draft)
    expected = {"Fluent languages": "Czech, English", "Age": 25, "Sex": "Female"}
    assert answers[SURVEY, "5e9088a8a4b6ed018b45ba7b"] == expected
    expected = [("approved", 1150), ("rejected", 189), ("submitted", 1209)]
    assert [(each.status, each.seconds) for each in draft.submissions] == expected
    missing, notes = {"DATA_EXPIRED": 1}, {"other_columns"}
    assert_counts(draft, (4, 3), {"not_respondent": 1}, missing=missing, notes=notes)


def test_prolific_task_builder_has_a_record_per_instruction():
    draft = read_fixture("prolific_task_builder.json", "prolific", response="reply")
    assert answers_of(draft) == {
        ("t1", "p1"): {
            **{"i-fit": "fits", "i-fix": "It is Bonn."},
            **ticks("i-why", "clear short", "clear short"),
        },
        ("t1", "p2"): {"i-fit": "does not fit"},
        ("t2", "p2"): {"i-fit": "fits"},
    }
    assert [item.candidates[0].text for item in draft.items] == ["Bonn.", "Rain."]
    parts = {"explanations": 1, "files": 1}
    assert_counts(draft, (6, 5), {"no_answer": 1}, parts, notes={"json_page"})
