import json
import math

import pytest
from django.core.management.base import CommandError

from annotation.exceptions import ImportRefused, StudyUnknown
from annotation.models import Candidate
from metrics.frames import score_frame
from metrics.imports import import_scores
from metrics.models import Score, ScoringRun
from tests.annotation.importing import command_output
from tests.annotation.studies import alternatives_study, rating_study

pytestmark = pytest.mark.django_db


def values(study):
    return {
        (row.metric, row.item, row.candidate): None if math.isnan(row.value) else row.value
        for row in score_frame(study).itertuples()
    }


def assert_refused(path, problem, *, line=None, field=None, study=None, **options):
    """Refused at that line and field, and neither a run nor a score was written."""
    study = study or rating_study(n_items=2)
    with pytest.raises(ImportRefused, match=problem) as caught:
        import_scores(study=study, path=path, **options)
    assert (caught.value.line, caught.value.field) == (line, field)
    assert str(caught.value).endswith("nothing was imported.")
    assert not ScoringRun.objects.exists()
    assert not Score.objects.exists()


def test_a_long_file_has_a_row_for_each_score(write):
    study = rating_study(n_items=2)
    path = write(
        "item,system,metric,value", "d0,alpha,nll,-1.5", "d0,beta,nll,2e-3", "d1,alpha,bleurt,0"
    )
    assert import_scores(study=study, path=path) == {"nll": 2, "bleurt": 1}
    assert values(study) == {
        ("nll", "d0", "alpha"): -1.5,
        ("nll", "d0", "beta"): 0.002,
        ("bleurt", "d1", "alpha"): 0,
    }
    assert {run.signature for run in ScoringRun.objects.all()} == {"imported|file:scores.csv"}
    assert all(run.higher_is_better for run in ScoringRun.objects.all())


def test_a_wide_file_has_a_column_for_each_metric(write):
    study = rating_study(n_items=1)
    path = write("item,system,nll,style,comment", "d0,alpha,1,2,x", "d0,beta,3,4,y")
    assert import_scores(study=study, path=path, metrics=["nll", "style"]) == {"nll": 2, "style": 2}
    assert values(study) == {
        ("nll", "d0", "alpha"): 1,
        ("nll", "d0", "beta"): 3,
        ("style", "d0", "alpha"): 2,
        ("style", "d0", "beta"): 4,
    }


def test_a_metric_named_twice_is_read_once(write):
    study = rating_study(n_items=1)
    path = write("item,system,nll", "d0,alpha,1")
    assert import_scores(study=study, path=path, metrics=["nll", "nll"]) == {"nll": 1}


def test_json_lines_hold_the_same(write):
    study = rating_study(n_items=1)
    rows = [
        {"item": "d0", "system": "alpha", "metric": "nll", "value": 1.25},
        {"item": "d0", "system": "beta", "metric": "nll", "value": None},
    ]
    path = write(*map(json.dumps, rows), name="scores.jsonl")
    import_scores(study=study, path=path)
    assert values(study) == {("nll", "d0", "alpha"): 1.25, ("nll", "d0", "beta"): None}


def test_an_empty_cell_is_a_score_that_was_not_computed(write):
    study = rating_study(n_items=1)
    path = write("item,system,metric,value", "d0,alpha,nll, ", "d0,beta,nll,1")
    assert import_scores(study=study, path=path) == {"nll": 2}
    score = Score.objects.get(candidate__key="alpha")
    assert (score.value, score.reason) == (None, "not computed")


def test_metrics_are_better_when_higher_unless_said_otherwise(write):
    path = write("item,system,nll,style", "d0,alpha,1,2")
    import_scores(
        study=rating_study(), path=path, metrics=["nll", "style"], lower_is_better=["nll"]
    )
    runs = ScoringRun.objects.values_list("metric", "higher_is_better")
    assert dict(runs) == {"nll": False, "style": True}


def test_the_file_may_give_signatures_which_keep_runs_apart(write):
    study = rating_study(n_items=1)
    path = write(
        "item,system,metric,value,signature",
        "d0,alpha,nll,1,nll|model:small",
        "d0,alpha,nll,2,nll|model:large",
        "d0,beta,nll,3,",
    )
    assert import_scores(study=study, path=path) == {"nll": 3}
    stored = Score.objects.order_by("value").values_list("run__signature", "value")
    assert list(stored) == [
        ("nll|model:small", 1),
        ("nll|model:large", 2),
        ("imported|file:scores.csv", 3),
    ]


def test_a_corrected_file_of_the_same_name_replaces_its_scores(write):
    study = rating_study(n_items=1)
    for value in ("1", "2"):
        import_scores(study=study, path=write("item,system,metric,value", f"d0,alpha,nll,{value}"))
    assert values(study) == {("nll", "d0", "alpha"): 2}


def test_products_are_named_by_their_key(write):
    study = alternatives_study()
    path = write("item,candidate,metric,value", "boot,clog,cosine,0.9")
    import_scores(study=study, path=path)
    assert values(study) == {("cosine", "boot", "clog"): 0.9}


def test_a_system_names_the_only_candidate_it_has_of_an_item(write):
    study = rating_study(n_items=1)
    Candidate.objects.filter(key="alpha").update(key="alpha/0")
    import_scores(study=study, path=write("item,system,metric,value", "d0,alpha,nll,1"))
    assert values(study) == {("nll", "d0", "alpha/0"): 1}


def test_a_system_with_several_candidates_of_an_item_names_none(write):
    study = rating_study(n_items=1)
    Candidate.objects.update(system="one")
    path = write("item,system,metric,value", "d0,one,nll,1")
    problem = "'one' has 2 candidates of 'd0'; name one by its key"
    assert_refused(path, problem, line=2, field="candidate", study=study)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("d7,alpha,nll,1", "has no candidate 'alpha' of 'd7'"),
        ("d0,gamma,nll,1", "has no candidate 'gamma' of 'd0'"),
    ],
)
def test_scores_of_unknown_candidates_are_refused(write, row, problem):
    path = write("item,system,metric,value", "d0,alpha,nll,1", row)
    assert_refused(path, problem, line=3)


@pytest.mark.parametrize(
    ("row", "problem", "field"),
    [
        (",alpha,nll,1", "must not be empty", "item"),
        ("d0,,nll,1", "must not be empty", "system"),
        ("d0,beta,,1", "must not be empty", "metric"),
        ("d0,beta,nll,high", "'high' is not a number", "value"),
        ("d0,beta,nll,nan", "'nan' is not a finite number", "value"),
        ("d0,beta,nll,inf", "'inf' is not a finite number", "value"),
        (f"d0,beta,{'m' * 65},1", "65 characters, where 64 fit", "metric"),
        ("d0,alpha,nll,2", "line 2 gives 'nll' for it already", "value"),
    ],
)
def test_what_a_row_lacks_or_has_wrong_is_named_with_its_field(write, row, problem, field):
    path = write("item,system,metric,value", "d0,alpha,nll,1", row)
    assert_refused(path, problem, line=3, field=field)


def test_the_same_candidate_by_key_and_by_system_is_twice_the_same(write):
    study = rating_study(n_items=1)
    Candidate.objects.filter(key="alpha").update(key="alpha/0")
    path = write("item,candidate,system,metric,value", "d0,alpha/0,,nll,1", "d0,,alpha,nll,2")
    assert_refused(path, "line 2 gives 'nll'", line=3, field="value", study=study)


def test_a_wide_file_without_a_named_column_is_refused(write):
    path = write("item,system,nll", "d0,alpha,1")
    assert_refused(path, "columns are missing: style", line=1, metrics=["nll", "style"])


def test_a_wide_file_says_in_which_column_a_number_is_wrong(write):
    path = write("item,system,nll,style", "d0,alpha,1,2", "d0,beta,1,?")
    assert_refused(path, "is not a number", line=3, field="style", metrics=["nll", "style"])


def test_a_column_with_too_long_a_name_is_no_metric(write):
    name = "m" * 65
    path = write(f"item,system,{name}", "d0,alpha,1")
    assert_refused(path, "at most 64 characters", line=2, field=name, metrics=[name])


def test_a_metric_that_is_better_lower_must_be_in_the_file(write):
    path = write("item,system,metric,value", "d0,alpha,nll,1")
    assert_refused(path, r"no metric 'NLL' .*\(found: nll\)", lower_is_better=["NLL"])


@pytest.mark.parametrize(
    ("content", "problem"),
    [("item,system,metric,value", "it holds no rows"), ("item;system;metric;value\n", "missing")],
)
def test_a_file_without_scores_is_refused(write, content, problem):
    path = write(content)
    line = 1 if "missing" in problem else None
    assert_refused(path, problem, line=line)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert_refused(tmp_path / "none.csv", "there is no such file")


def test_the_command_counts_what_it_imported(write):
    rating_study(n_items=1)
    path = write("item,system,nll,style", "d0,alpha,1,2", "d0,beta,3,")
    options = {"metric": ["nll", "style"], "lower_is_better": ["nll"]}
    output = command_output("import_scores", path, study="ratings", **options)
    assert output == "Study 'ratings': 2 of nll, 2 of style scores imported.\n"


def test_the_command_knows_the_studies_there_are(write):
    rating_study()
    path = write("item,system,metric,value", "d0,alpha,nll,1")
    with pytest.raises(StudyUnknown, match=r"no study 'rating'. Studies: ratings"):
        command_output("import_scores", path, study="rating")


def test_a_signature_given_by_hand_is_that_of_rows_that_name_none(write):
    study = rating_study(n_items=1)
    path = write("item,system,metric,value,signature", "d0,alpha,nll,1,", "d0,beta,nll,2,nll|v:2")
    command_output("import_scores", path, study=study.slug, signature="nll|model:bloom-7b1|v:1")
    assert set(ScoringRun.objects.values_list("signature", flat=True)) == {
        "nll|model:bloom-7b1|v:1",
        "nll|v:2",
    }


def test_a_signature_too_long_to_keep_is_refused(write):
    rating_study(n_items=1)
    with pytest.raises(CommandError, match="--signature: 501 characters, where 500 fit"):
        command_output("import_scores", write("x"), study="ratings", signature="x" * 501)


def test_the_reason_of_an_undefined_score_is_kept(write):
    study = rating_study(n_items=1)
    path = write("item,system,metric,value,reason", "d0,alpha,nll,,no reference", "d0,beta,nll,,")
    import_scores(study=study, path=path)
    reasons = Score.objects.order_by("candidate__key").values_list("reason", flat=True)
    assert list(reasons) == ["no reference", "not computed"]


def test_what_the_command_score_writes_can_be_imported(write, tmp_path):
    study = rating_study(n_items=1)
    items = write("item,system,response", "d0,alpha,x", "d0,beta,", name="items.csv")
    command_output("score", items, "--metric=length", f"--output={tmp_path / 'scores.csv'}")
    assert import_scores(study=study, path=tmp_path / "scores.csv")["length"] == 2
    assert ScoringRun.objects.get(metric="length").signature.startswith("length|")
