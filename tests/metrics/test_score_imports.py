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
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.django_db


def values(study):
    return {
        (row.metric, row.item, row.candidate): None if math.isnan(row.value) else row.value
        for row in score_frame(study).itertuples()
    }


def assert_refused(path, code="", *, study=None, line=None, field=None, options=None):
    """Refused with that code at that line and field; neither a run nor a score was written."""
    study = study or rating_study(n_items=2)
    expected = {"line": line, "field": field} | ({"code": code} if code else {})
    with refused(ImportRefused, **expected):
        import_scores(study=study, path=path, **(options or {}))
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
    names = ["nll", "style", "nll"]
    assert import_scores(study=study, path=path, metrics=names) == {"nll": 2, "style": 2}
    assert values(study) == {
        ("nll", "d0", "alpha"): 1,
        ("nll", "d0", "beta"): 3,
        ("style", "d0", "alpha"): 2,
        ("style", "d0", "beta"): 4,
    }


def test_json_lines_hold_the_same_and_null_or_an_empty_cell_is_not_computed(write):
    study = rating_study(n_items=1)
    rows = [
        {"item": "d0", "system": "alpha", "metric": "nll", "value": 1.25},
        {"item": "d0", "system": "beta", "metric": "nll", "value": None},
    ]
    import_scores(study=study, path=write(*map(json.dumps, rows), name="scores.jsonl"))
    assert values(study) == {("nll", "d0", "alpha"): 1.25, ("nll", "d0", "beta"): None}
    # A corrected file replaces the scores of the same metric and signature.
    path = write("item,system,metric,value,reason", "d0,alpha,nll, ,", "d0,beta,nll,,E17")
    assert import_scores(study=study, path=path, signature="imported|file:scores.jsonl") == {
        "nll": 2
    }
    unknown, given = Score.objects.order_by("candidate__key")
    assert (unknown.value, given.value, given.reason) == (None, None, "E17")
    assert unknown.reason


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


def test_products_are_named_by_their_key_and_lone_candidates_by_their_system(write):
    study = alternatives_study()
    path = write("item,candidate,metric,value", "boot,clog,cosine,0.9")
    import_scores(study=study, path=path)
    assert values(study) == {("cosine", "boot", "clog"): 0.9}
    study = rating_study(n_items=1)
    Candidate.objects.filter(key="alpha").update(key="alpha/0")
    import_scores(study=study, path=write("item,system,metric,value", "d0,alpha,nll,1"))
    assert values(study) == {("nll", "d0", "alpha/0"): 1}


@pytest.mark.parametrize(
    ("row", "code", "field"),
    [
        ("d7,alpha,nll,1", "unknown_candidate", None),
        ("d0,gamma,nll,1", "unknown_candidate", None),
        (",alpha,nll,1", "", "item"),
        ("d0,,nll,1", "", "system"),
        ("d0,beta,,1", "", "metric"),
        ("d0,beta,nll,high", "", "value"),
        ("d0,beta,nll,nan", "", "value"),
        ("d0,beta,nll,inf", "", "value"),
        (f"d0,beta,{'m' * 65},1", "", "metric"),
        ("d0,alpha,nll,2", "repeated_score", "value"),
    ],
)
def test_what_a_row_lacks_or_has_wrong_is_named_with_its_field(write, row, code, field):
    path = write("item,system,metric,value", "d0,alpha,nll,1", row)
    assert_refused(path, code, line=3, field=field)


def test_absent_files_candidates_named_twice_and_systems_with_several_are_refused(write, tmp_path):
    study = rating_study(n_items=1)
    assert_refused(tmp_path / "none.csv", study=study)
    Candidate.objects.filter(key="alpha").update(key="alpha/0")
    path = write("item,candidate,system,metric,value", "d0,alpha/0,,nll,1", "d0,,alpha,nll,2")
    assert_refused(path, "repeated_score", line=3, field="value", study=study)
    Candidate.objects.update(system="one")
    path = write("item,system,metric,value", "d0,one,nll,1")
    assert_refused(path, "several_candidates", line=2, field="candidate", study=study)


LONG_NAME = "m" * 65


@pytest.mark.parametrize(
    ("lines", "code", "line", "field", "options"),
    [
        (["item,system,nll", "d0,alpha,1"], "", 1, None, {"metrics": ["nll", "style"]}),
        (
            ["item,system,nll,style", "d0,alpha,1,2", "d0,beta,1,?"],
            *("", 3, "style", {"metrics": ["nll", "style"]}),
        ),
        (
            [f"item,system,{LONG_NAME}", "d0,alpha,1"],
            *("too_long", 2, LONG_NAME, {"metrics": [LONG_NAME]}),
        ),
        (
            ["item,system,metric,value", "d0,alpha,nll,1"],
            *("unknown_metric", None, None, {"lower_is_better": ["NLL"]}),
        ),
        (["item,system,metric,value"], "", None, None, {}),
        (["item:system:metric:value", "d0:alpha:nll:1"], "missing_columns", 1, None, {}),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused(write, lines, code, line, field, options):
    assert_refused(write(*lines), code, line=line, field=field, options=options)


def test_the_command_imports_wide_files_and_knows_the_studies_there_are(write):
    rating_study(n_items=1)
    path = write("item,system,nll,style", "d0,alpha,1,2", "d0,beta,3,")
    options = {"metric": ["nll", "style"], "lower_is_better": ["nll"]}
    command_output("import_scores", path, study="ratings", **options)
    assert Score.objects.count() == 4
    assert dict(ScoringRun.objects.values_list("metric", "higher_is_better")) == {
        "nll": False, "style": True,
    }  # fmt: skip
    with refused_naming(StudyUnknown, "'rating'", "ratings"):
        command_output("import_scores", path, study="rating")


def test_a_signature_given_by_hand_is_that_of_rows_that_name_none_if_it_can_be_kept(write):
    study = rating_study(n_items=1)
    path = write("item,system,metric,value,signature", "d0,alpha,nll,1,", "d0,beta,nll,2,nll|v:2")
    command_output("import_scores", path, study=study.slug, signature="nll|model:bloom-7b1|v:1")
    assert set(ScoringRun.objects.values_list("signature", flat=True)) == {
        "nll|model:bloom-7b1|v:1",
        "nll|v:2",
    }
    with refused_naming(CommandError, "--signature", 501, 500):
        command_output("import_scores", write("x"), study="ratings", signature="x" * 501)


def test_what_the_command_score_writes_can_be_imported(write, tmp_path):
    study = rating_study(n_items=1)
    items = write("item,system,response", "d0,alpha,x", "d0,beta,", name="items.csv")
    command_output("score", items, "--metric=length", f"--output={tmp_path / 'scores.csv'}")
    assert import_scores(study=study, path=tmp_path / "scores.csv")["length"] == 2
    assert ScoringRun.objects.get(metric="length").signature.startswith("length|")
