import json
from dataclasses import replace

import pandas as pd
import pytest

from annotation.models import Submission
from metrics.exceptions import NothingToValidate, ValidationUnknown
from presentation.files import FileUnwritable
from tests.annotation.importing import command_output
from tests.annotation.studies import rate
from tests.codes import refused_naming
from tests.validation.test_study_validation import judged_study, score as store_scores
from tests.validation.validation_tables import content_of, judged_table, row_of, score_table
from validation.analysis import Settings, report_from_tables
from validation.result_kinds.validation import make_validation
from validation.study_validation import study_report
from validation.versions import StoredResults, diff_since, find_validation, list_validations

pytestmark = pytest.mark.django_db

SYSTEMS = ("s0", "s1", "s2")
ANN, BOB = [[1, 2, 3], [30, 10, 20]], [[2, 1, 3], [30, 20, 10]]
SCORES = [[1, 2, 3], [3, 1, 2]]
FEW = {"n_resamples": 5, "n_permutations": 10, "n_splits": 2}
QUICK = Settings(**FEW, n_worst=1, levels=("item",), coefficients=("pearson",))


def judged(slug="judged", ratings=(("Ann", ANN), ("Bob", BOB))):
    return judged_study(slug, ratings, SYSTEMS, n_items=2)


def score(study, table=SCORES, metric="m", **options):
    store_scores(study, table, metric, systems=SYSTEMS, **options)


def reject(study, person):
    chosen = Submission.objects.of(study).filter(annotator__pseudonym=person)
    chosen.update(status=Submission.Status.REJECTED)


def validate(study, settings=QUICK):
    return make_validation(study=study, settings=settings)


def stored(version):
    return StoredResults(version.version, with_variants=True).content()


def pearson(rows):
    [row] = [row for row in rows if (row["level"], row["coefficient"]) == ("item", "pearson")]
    return row


@pytest.fixture(scope="module")
def study(stored_for_module):
    study = judged()
    score(study)
    return study


@pytest.fixture(scope="module")
def first(study):
    return validate(study)


def test_a_study_gives_the_report_that_its_plain_tables_give(study):
    human = [judged_table(table, annotator=name) for name, table in (("Ann", ANN), ("Bob", BOB))]
    tables = pd.concat(human).replace({"i0": "d0", "i1": "d1", "q": "appropriateness"})
    scores = score_table(SCORES, signature="m|v:1").replace({"i0": "d0", "i1": "d1"})
    settings = Settings(**FEW)
    plain = content_of(report_from_tables(tables, scores, settings))
    assert plain["correlations"]
    assert content_of(study_report(study, settings)) == plain


def test_a_first_report_is_version_one_and_stays_the_same_while_nothing_changes(study, first):
    assert (first.is_new, first.version.number, diff_since(first.version)) == (True, 1, None)
    assert stored(first) == content_of(study_report(study, QUICK))
    assert Settings.of(first.version.settings) == QUICK
    assert first.version.facts["material"] == stored(first)["fingerprint"]
    again = validate(study)
    assert (again.is_new, again.version) == (False, first.version)
    assert list_validations(study).count() == 1
    assert find_validation(study, 1) == first.version
    with refused_naming(ValidationUnknown, 7, 1):
        find_validation(study, 7)
    other = judged("other")
    score(other)
    assert validate(other).version.number == 1


def test_rejected_judgments_make_a_version_that_says_so_and_reinstated_ones_another(study, first):
    reject(study, "Bob")
    second = validate(study)
    assert (second.is_new, second.version.number) == (True, 2)
    changes = diff_since(second.version)
    counts = {"n_added": 0, "n_removed": 0, "n_rejected": 6, "n_reinstated": 0}
    assert changes["since"] == 1
    assert changes["judgments"] == {**counts, "are_same": False}
    assert (changes["settings"], changes["score_sets"]) == ([], [])
    moved = pearson(changes["correlations"])
    before, now = (pearson(stored(one)["correlations"])["value"] for one in (first, second))
    assert (moved["before"], moved["now"]) == (before, now)
    assert moved["delta"] == pytest.approx(now - before)
    assert now == pytest.approx(1)
    Submission.objects.of(study).update(status=Submission.Status.APPROVED)
    third = validate(study)
    assert (third.is_new, third.version.number) == (True, 3)
    assert diff_since(third.version)["judgments"]["n_reinstated"] == 6


def test_new_and_removed_judgments_are_counted(study, first):
    rate(study, "Cem", "d0", dict(zip(SYSTEMS, (3, 2, 1), strict=True)))
    added = diff_since(validate(study).version)["judgments"]
    assert (added["n_added"], added["n_removed"]) == (3, 0)
    Submission.objects.of(study).filter(annotator__pseudonym="Cem").delete()
    removed = diff_since(validate(study).version)["judgments"]
    assert (removed["n_added"], removed["n_removed"]) == (0, 3)


def test_score_sets_that_were_added_or_changed_are_named(study, first):
    score(study, [[3, 2, 1], [1, 2, 3]], "other")
    added = diff_since(validate(study).version)
    assert [(one["metric"], one["change"]) for one in added["score_sets"]] == [("other", "added")]
    assert added["judgments"]["are_same"]
    assert {(row["metric"], row["before"]) for row in added["correlations"]} == {("other", None)}
    score(study, [[1, 2, 3], [1, 2, 3]], "m")
    changed = diff_since(validate(study).version)
    assert [(one["metric"], one["change"]) for one in changed["score_sets"]] == [("m", "changed")]
    assert {row["metric"] for row in changed["correlations"]} == {"m"}


def test_other_settings_make_another_version_and_each_is_found_again(study, first):
    zeroed = validate(study, replace(QUICK, undefined="zero"))
    assert diff_since(zeroed.version)["settings"] == [
        {"setting": "undefined", "before": "drop", "now": "zero"}
    ]
    assert validate(study).version == first.version
    assert validate(study, replace(QUICK, undefined="zero")).version == zeroed.version


def test_rejected_judgments_are_a_policy_of_the_report(study):
    reject(study, "Bob")
    [row] = [
        one
        for one in study_report(study, QUICK).sensitivity
        if (one.setting, one.level, one.coefficient) == ("judgments", "item", "pearson")
    ]
    assert row.base_value == pytest.approx(1)
    everyone = replace(QUICK, judgments="all")
    of_all = row_of(study_report(study, everyone), level="item", coefficient="pearson")
    assert row.value == of_all["value"] < 1
    reject(study, "Ann")
    with pytest.raises(NothingToValidate):
        validate(study)
    everything = stored(validate(study, everyone))
    assert everything["inputs"]["n_counted"] == everything["inputs"]["n_rejected"] == 12
    assert everything["correlations"][0]["value"] is not None


def test_less_is_better_as_the_scores_say():
    study = judged("less", ratings=[("Ann", ANN)])
    score(study, [[3, 2, 1], [1, 3, 2]], higher_is_better=False)
    report = study_report(study, replace(QUICK, coefficients=("kendall",)))
    assert row_of(report, level="item", coefficient="kendall")["value"] == 1


def test_the_command_makes_versions_and_says_which(study, first):
    def lines(*options):
        return command_output(
            "validate_study", "judged", "--resamples=5", "--permutations=10", *options
        ).splitlines()

    new, again = lines(), lines()
    assert new[:-1] == again[:-1]
    assert new[-1] != again[-1]
    zeroed = lines("--undefined=zero", "--level=sample")
    assert list_validations(study).count() == 3
    assert zeroed[-1] == new[-1].replace("2", "3")
    assert {line.split()[3] for line in zeroed[1:4]} == {"item"}


def test_the_command_writes_the_whole_to_a_file(study, first, tmp_path):
    path = tmp_path / "report.json"
    with refused_naming(FileUnwritable, "none"):
        command_output("validate_study", "judged", output=tmp_path / "none" / "report.json")
    assert list_validations(study).count() == 1  # none was made for nothing
    command_output("validate_study", "judged", resamples=5, output=path, plan=["sample:pearson"])
    written = json.loads(path.read_text())
    assert (written["version"], written["settings"]["planned"]) == (2, [["item", "pearson"]])
    assert written["planning"] == []  # there is one metric only
