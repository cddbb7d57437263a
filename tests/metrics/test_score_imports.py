import json
import math

import pytest
from django.core.management.base import CommandError

from annotation.exceptions import ImportRefused, StudyUnknown
from annotation.models import Candidate, Study
from annotation.readers.policies import Policies, Reading
from metrics import exceptions, study_files
from metrics.models import Score, ScoringRun
from metrics.score_tables import import_scores
from tests.annotation.importing import command_output, numbers_in
from tests.annotation.studies import alternatives_study, rating_study
from tests.codes import codes_of, refused, refused_naming

pytestmark = pytest.mark.django_db


def values(study):
    return {
        (row.metric, row.item, row.candidate): None if math.isnan(row.value) else row.value
        for row in study_files.score_frame(study).itertuples()
    }


def assert_refused(path, code="", *, study=None, line=None, field=None, options=None):
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


def test_absent_files_candidates_named_twice_and_systems_with_several_are_refused(write, tmp_path):
    study = rating_study(n_items=1)
    assert_refused(tmp_path / "none.csv", study=study)
    Candidate.objects.filter(key="alpha").update(key="alpha/0")
    path = write("item,candidate,system,metric,value", "d0,alpha/0,,nll,1", "d0,,alpha,nll,2")
    assert_refused(path, "repeated_score", line=3, field="value", study=study)
    Candidate.objects.update(system="one")
    path = write("item,system,metric,value", "d0,one,nll,1")
    assert_refused(path, "several_candidates", line=2, field="candidate", study=study)


def read_by(write, *rows, header="item,system,metric,value", **options):
    study = Study.objects.first() or rating_study(n_items=1)
    names = {name: options.pop(name) for name in ("metrics", "systems") if name in options}
    reading = Reading(Policies(**options))
    import_scores(study=study, path=write(header, *rows), reading=reading, **names)
    return values(study), reading.report


def test_missing_words_are_scores_not_computed_and_names_that_look_alike_are_noted(write):
    stored, report = read_by(write, "d0,alpha,nll,NA", "d0,beta,nll,nan", "d0,beta,bleu,")
    assert set(stored.values()) == {None}
    assert (report.n_rows, report.n_used) == (3, 3)
    assert report.missing == {"NA": 1, "nan": 1, "": 1}
    _stored, report = read_by(write, "d0,alpha,BLEU,1", "d0,beta,bleu,2")
    assert codes_of(report.notes) == ["look_alike_metrics"]
    with refused(ImportRefused, "not_number", line=2, field="value"):
        read_by(write, "d0,alpha,nll,NA", missing="empty")


@pytest.mark.parametrize(
    ("repeats", "value", "n_left_out"),
    [("first", 1, 2), ("last", 3, 2), ("mean", 7 / 3, 0), ("majority", 3, 0)],
)
def test_one_of_repeated_scores_counts(write, repeats, value, n_left_out):
    rows = [f"d0,alpha,nll,{n}" for n in (1, 3, 3)]
    stored, report = read_by(write, *rows, repeats=repeats)
    assert stored == {("nll", "d0", "alpha"): pytest.approx(value)}
    assert report.n_rows - report.n_used == n_left_out
    if n_left_out:
        assert report.left_out["repeated_score"].places == [
            f"line {n}" for n in ((3, 4) if repeats == "first" else (2, 3))
        ]
    else:
        assert codes_of(report.notes) == [f"repeats_{repeats}"]


@pytest.mark.parametrize(("repeats", "value"), [("first", 1), ("last", 3)])
def test_a_missing_score_is_none_of_several(write, repeats, value):
    rows = [f"d0,alpha,nll,{cell}" for cell in ("NA", "1", "3", "")]
    stored, report = read_by(write, *rows, repeats=repeats)
    assert stored == {("nll", "d0", "alpha"): value}
    assert (report.n_used, report.missing.total()) == (1, 2)


def test_rows_about_unknown_candidates_can_be_left_out(write):
    rows = ["d0,alpha,nll,1", "d7,alpha,nll,2", "d0,gamma,nll,3"]
    stored, report = read_by(write, *rows, unmatched="leave-out")
    assert stored == {("nll", "d0", "alpha"): 1}
    assert (report.n_rows, report.n_used) == (3, 1)
    assert report.left_out["unknown_candidate"].n == 2
    assert report.policies["unmatched"] == "leave-out"


def test_a_matrix_has_a_column_for_each_system(write):
    rows = ["d0,nll,1,2", "d0,bleu,,4"]
    header = "item,metric,alpha,beta"
    stored, report = read_by(write, *rows, header=header, systems=["alpha", "beta"])
    assert stored == {
        ("nll", "d0", "alpha"): 1,
        ("nll", "d0", "beta"): 2,
        ("bleu", "d0", "alpha"): None,
        ("bleu", "d0", "beta"): 4,
    }
    assert report.missing == {"": 1}
    with refused(ImportRefused, "not_number", line=2, field="beta"):
        read_by(write, "d0,nll,1,x", header=header, systems=["alpha", "beta"])
    with refused(exceptions.MetricsError, "metrics_and_systems"):
        read_by(write, *rows, header=header, systems=["alpha"], metrics=["beta"])


LONG_NAME = "m" * 65


@pytest.mark.parametrize(
    ("lines", "code", "line", "field", "options"),
    [
        *[
            (["item,system,metric,value", "d0,alpha,nll,1", row], code, 3, field, {})
            for row, code, field in [
                ("d7,alpha,nll,1", "unknown_candidate", None),
                ("d0,gamma,nll,1", "unknown_candidate", None),
                (",alpha,nll,1", "", "item"),
                ("d0,,nll,1", "", "system"),
                ("d0,beta,,1", "", "metric"),
                ("d0,beta,nll,high", "", "value"),
                ("d0,beta,nll,inf", "", "value"),
                (f"d0,beta,{LONG_NAME},1", "", "metric"),
                ("d0,alpha,nll,2", "repeated_score", "value"),
            ]
        ],
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
def test_what_a_file_or_a_row_lacks_or_has_wrong_is_named_with_its_field(
    write, lines, code, line, field, options
):
    assert_refused(write(*lines), code, line=line, field=field, options=options)


def test_the_command_imports_wide_files_and_knows_the_studies_there_are(write):
    study = rating_study(n_items=1)
    path = write("item,system,nll,style,comment", "d0,alpha,1,2,x", "d0,beta,3,,y")
    options = {"metric": ["nll", "style", "nll"], "lower_is_better": ["nll"]}
    text = command_output("import_scores", path, study="ratings", **options)
    assert numbers_in(text.splitlines()[1]) == [2, 2]
    assert values(study) == {
        ("nll", "d0", "alpha"): 1,
        ("nll", "d0", "beta"): 3,
        ("style", "d0", "alpha"): 2,
        ("style", "d0", "beta"): None,
    }
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
