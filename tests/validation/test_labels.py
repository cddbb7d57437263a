import pytest
from django.contrib.auth import get_user_model

from annotation import disputes, exceptions, models
from annotation.label_sets import Rule, make_label_set
from tests.annotation import importing, studies
from tests.codes import refused
from tests.validation.test_study_validation import SYSTEMS, judged_study, score
from validation import analysis, versions
from validation.analysis.ceilings import OF_LABELS
from validation.result_kinds.validation import make_validation
from validation.study_report import ReportRequest, study_report_document
from validation.study_validation import LabelsUnfit, study_report

pytestmark = pytest.mark.django_db

QUICK = {"n_resamples": 20, "n_permutations": 20, "n_splits": 2}
VALUES = {"Ann": (100, 40, 70, 90), "Bob": (23, 20, 90, 70), "Cem": (81, 30, 80, 80)}


@pytest.fixture
def study():
    rated = judged_study(ratings=[(who, [values]) for who, values in VALUES.items()], n_items=1)
    score(rated, [[0.1, 0.3, 0.2, 0.9]])
    return rated


@pytest.fixture
def labels(study):
    """Ann gave 100, Bob 23 and Cem 81, which becomes 75; every other label is a mean."""
    question = study.questions.get()
    disputes.decide(
        candidate=models.Candidate.objects.get(item__study=study, key="alpha"),
        question=question,
        value=75,
        decided_by=get_user_model().objects.create_user("rosa"),
    )
    return make_label_set(question=question, rule=Rule("mean")).label_set


def pooled(study, **settings):
    report = study_report(study, analysis.Settings(**QUICK | settings))
    [row] = [
        row for row in report.correlations if (row.level, row.coefficient) == ("pooled", "pearson")
    ]
    return row.value


def test_a_decision_changes_nothing_until_its_labels_are_chosen(study, request):
    before = pooled(study)
    undecided = make_label_set(question=study.questions.get(), rule=Rule("mean")).label_set
    assert pooled(study, labels=(undecided.version,)) == pytest.approx(before)
    labels = request.getfixturevalue("labels")
    assert pooled(study) == before
    assert pooled(study, labels=(labels.version,)) != before


def test_labels_are_the_human_values_named_by_the_report_and_without_a_ceiling(study, labels):
    settings = analysis.Settings(**QUICK, labels=(labels.version,))
    stored = make_validation(study=study, settings=settings)
    scatter = versions.StoredResults(stored.version).scatter("appropriateness", "m", "m|v:1")
    human = {row["candidate"]: row["human"] for row in scatter.rows}
    assert human["alpha"] == 75
    assert human["beta"] == pytest.approx(30)
    again = make_validation(study=study, settings=settings)
    assert (again.version, again.is_new) == (stored.version, False)
    options = {"resamples": 20, "permutations": 20}
    importing.command_output("validate_study", "judged", **options)
    lines = importing.command_output("validate_study", "judged", labels=[labels.version], **options)
    assert f"appropriateness: labels {labels.version}." in lines
    document = study_report_document(ReportRequest(study, number=3))
    assert labels.signature in document.about["methods"]
    assert document.about["inputs"]["labels"][0]["signature"] == labels.signature
    cells = [cell for table in document.tables for row in table.rows for cell in row]
    signatures = {cell.signature for cell in cells if getattr(cell, "signature", "")}
    assert any(f"|labels:{labels.version}|" in signature for signature in signatures)
    report = study_report(study, analysis.Settings(**QUICK, labels=(labels.version,)))
    assert {one.reason for one in report.ceilings} == {OF_LABELS}
    assert {one.attainable for one in report.ceilings} == {None}
    assert {one.setting for one in report.sensitivity} <= {"undefined", "unparsed"}


def test_labels_of_another_round_are_refused(study):
    for person in VALUES:
        studies.rate(study, person, "d0", dict.fromkeys(SYSTEMS, 10.0), round=2)
    labels = make_label_set(question=study.questions.get(), rule=Rule("mean", round=2)).label_set
    with refused(LabelsUnfit, "other_round"):
        study_report(study, analysis.Settings(**QUICK, labels=(labels.version,)))
    report = study_report(study, analysis.Settings(**QUICK, labels=(labels.version,), round=2))
    assert report.inputs.labels[0].version == labels.version


def test_labels_that_do_not_fit_are_refused(study, labels):
    other = make_label_set(question=study.questions.get(), rule=Rule("median")).label_set
    with pytest.raises(exceptions.LabelSetUnknown):
        study_report(study, analysis.Settings(labels=(9,)))
    with refused(LabelsUnfit, "several_label_sets"):
        study_report(study, analysis.Settings(labels=(labels.version, other.version)))
