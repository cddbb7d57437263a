import json

import pytest
from django.core.management import CommandError

from annotation import flags, models
from annotation.result_kinds.agreement import AgreementKind, agreement_records
from console.glossary import ALPHA
from metrics.stored_scores import write_scores
from tests.annotation.importing import command_output
from tests.annotation.studies import doubt, rate, rated_study, rating_study
from tests.console.filled import add_scores, scored_study
from validation.analysis.records import CorrelationRecord, plain
from validation.result_kinds.validation import HumanResultsKind, ValidationKind
from validation.versions import StoredResults

pytestmark = pytest.mark.django_db

APPROVED, REJECTED = models.Submission.Status.APPROVED, models.Submission.Status.REJECTED


def alpha_of(study):
    return next(row for row in agreement_of(study)["coefficients"] if row["name"] == ALPHA)


def agreement_of(study):
    records = agreement_records(AgreementKind().require(study))
    for record in (*records["coefficients"], *records["between_rounds"]):
        del record["signature"]
    return records


def pooled_text(study):
    return next(row for row in rows_of(study) if row.level == "pooled")


def rows_of(study, **which):
    return StoredResults(ValidationKind().require(study)).rows(CorrelationRecord, **which)


def fingerprint(study, kind=ValidationKind):
    counted = models.Study.objects.only("judgments_version", "scores_version")
    return kind().fingerprint(counted.get(pk=study.pk))


def set_status(status, **which):
    """As whoever decides on submissions does."""
    submissions = models.Submission.objects.filter(**which)
    studies = set(submissions.values_list("item__study", flat=True))
    submissions.update(status=status)
    flags.count_judgments_change(study_ids=studies)


def test_an_unchanged_study_is_read_once(django_assert_num_queries):
    study = scored_study()
    first = AgreementKind().require(study), ValidationKind().require(study)
    with django_assert_num_queries(4):  # two fingerprints, two versions
        again = AgreementKind().require(study), ValidationKind().require(study)
    assert again == first


def test_a_result_is_kept_until_what_it_rests_on_changes():
    study = rated_study()
    assert not AgreementKind().is_stored(study)
    AgreementKind().compute_now(study)
    study.refresh_from_db()
    assert AgreementKind().is_stored(study)
    rate(study, "Cyd", "d0", {"alpha": 90})
    study.refresh_from_db()
    assert not AgreementKind().is_stored(study)


def test_rejected_withdrawn_and_new_submissions_change_the_agreement_shown():
    study = rated_study()
    before = alpha_of(study)
    set_status(REJECTED, item__key="d0", annotator__pseudonym="Bob")
    after = alpha_of(study)
    assert after["n_labels"] == before["n_labels"] - 2
    assert after["value"] != before["value"]
    set_status(APPROVED)
    assert alpha_of(study) == before
    rate(study, "Cyd", "d0", {"alpha": 90, "beta": 10})
    assert alpha_of(study)["value"] < before["value"]
    other = rated_study("other")
    models.Submission.objects.of(other).filter(item__key="d1", annotator__pseudonym="Ann").delete()
    flags.count_judgments_change(study_ids=[other.pk])
    assert alpha_of(other)["n_labels"] == before["n_labels"] - 2


def test_a_doubted_submission_makes_the_results_anew():
    study = rated_study()
    before = fingerprint(study)
    doubt(models.Submission.objects.first())
    assert fingerprint(study) != before
    doubted_only = fingerprint(study)
    flags.unflag_submissions(submissions=models.Submission.objects.all())
    assert fingerprint(study) not in (before, doubted_only)
    # Scores leave the agreement as it is.
    before = (fingerprint(study, AgreementKind), fingerprint(study))
    add_scores(study)
    assert fingerprint(study, AgreementKind) == before[0]
    assert fingerprint(study) != before[1]


@pytest.mark.parametrize("n_items", [3, 30])
def test_a_fingerprint_costs_the_same_however_much_there_is(n_items, django_assert_num_queries):
    study = rated_study(n_items=n_items)
    doubt(*models.Submission.objects.all())
    with django_assert_num_queries(1) as queries:
        fingerprint(study)
    assert len(queries[0]["sql"]) < 400


def test_new_and_other_scores_change_the_correlations_shown():
    study = rated_study()
    assert study.slug in ValidationKind().require(study).facts["reason"]
    assert not ValidationKind().require(study).record
    add_scores(study)
    before = pooled_text(study)
    assert before.n_rows == 6
    values = {("d0", "alpha"): 0.125, ("d0", "beta"): 0.0}
    write_scores(study=study, metric="nll", signature="nll|v:1", values=values)
    assert pooled_text(study).value < before.value


def test_studies_with_the_same_content_are_kept_apart():
    first, second = rating_study("first"), rating_study("second")
    before = fingerprint(second)
    assert fingerprint(first) != before
    add_scores(first)
    rate(first, "Ann", "d0", {"alpha": 1, "beta": 2})
    assert ValidationKind().require(first).subject == first
    assert "'second'" in ValidationKind().require(second).facts["reason"]
    assert fingerprint(second) == before


def test_computing_tells_how_far_it_is():
    steps = []

    def progress(things, total):
        steps.append(total)
        yield from things

    HumanResultsKind().compute_now(scored_study(), progress)
    assert steps == [1]


def test_a_command_computes_and_prints_results_of_a_study():
    study = scored_study()
    people = json.loads(command_output("compute_result", "human_results", study.slug, "--json"))
    assert {row["system"] for row in people["tables"]["systems"]} == {"alpha", "beta"}
    metrics = json.loads(command_output("compute_result", "validation", study.slug, "--json"))
    stored = [plain(row) for row in rows_of(study)]
    assert metrics["tables"]["correlations"] == stored
    assert "nll" in command_output("compute_result", "validation", study.slug)
    with pytest.raises(CommandError):
        command_output("compute_result", "validation", "nothing")
