"""Several assessors' grades in one file of a collection: recognised, used as the command does."""

import io
import json

import numpy as np
import pytest
from django.core.management import call_command

from retrieval.exceptions import TrecFileFaults
from retrieval.models import AnyTwoAssessors, CollectionVersion, RankingPair
from tests.codes import field_codes, message_codes
from tests.console.pages import answer_codes
from tests.retrieval.collections import add_file, qrels_text, run_text, sent
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
FILES, TRUST = "/collections/tracks/files/", "/collections/tracks/trust/"
SKILLS = (("bm25", 0.5, 2), ("dense", 3.0, 1), ("rm3", 0.5, 3))
ASSESSORS = ("ada", "ben", "cem")


def grades_text(*, n_topics=25, seed=4, names=ASSESSORS):
    """Each assessor turns a tenth of the grades; assessor by assessor."""
    rng = np.random.default_rng(seed)
    return "".join(
        f"t{topic} {name} d{document} {int((document < 5) != (rng.random() < 0.1))}\n"
        for topic in range(n_topics)
        for name in names
        for document in range(30)
    )


def form_of(collection, assessors, **more):
    return {
        "qrels": [],
        "assessors": assessors.pk,
        "runs": [file.pk for file in collection.files.runs()],
        "measures": ["nDCG@10"],
        "primary": "nDCG@10",
        "missing": "common",
        "ties": "falling",
        "seed": "0",
    } | more


def said_by_command(tmp_path, *options, text):
    (tmp_path / "jg.txt").write_text(text)
    (tmp_path / "qrels.txt").write_text(qrels_text())
    for tag, skill, seed in SKILLS:
        path = tmp_path / f"{tag}.run"
        path.write_text(run_text(tag, skill=skill, seed=seed))
        options += ("--run", str(path))
    out = io.StringIO()
    call_command(
        "compare_qrels",
        *("--assessors", str(tmp_path / "jg.txt"), *options),
        *("--measure", "nDCG@10", "--primary", "nDCG@10", "--json"),
        stdout=out,
    )
    return json.loads(out.getvalue())


def test_two_grades_of_a_document_by_two_assessors_are_told_from_qrels(rosa, collection):
    files = [sent("jg.txt", grades_text()), sent("other.txt", qrels_text(relevant=7))]
    assert rosa.post(FILES, {"uploads": files}).status_code == 302
    kinds = dict(collection.files.values_list("name", "kind"))
    assert (kinds["jg.txt"], kinds["other.txt"]) == ("assessors", "qrels")
    file = collection.files.get(name="jg.txt")
    assert (file.n_assessors, file.n_topics, file.n_documents) == (3, 25, 30)
    assert (file.n_lines, file.is_usable) == (25 * 3 * 30, True)
    assert rosa.get(f"{FILES}{file.pk}/").status_code == 200


def test_a_document_twice_by_one_assessor_is_refused_by_line(rosa, collection):
    text = "t0 ada d1 1\nt0 ben d1 0\nt0 ada d1 0\n"
    rosa.post(FILES, {"uploads": [sent("jg.txt", text)]})
    [(line, problem)] = collection.files.get(file_name="jg.txt").faults
    assert line == 3
    assert all(name in problem for name in ("d1", "t0", "ada"))


def test_grades_sent_as_qrels_are_refused_by_line_after_a_hint(rosa, collection):
    rosa.post(FILES, {"uploads": [sent("jg.txt", grades_text())], "kind": "qrels"})
    lines = [line for line, _problem in collection.files.get(file_name="jg.txt").faults]
    assert lines[0] is None
    assert all(lines[1:])


def test_assessors_grades_alone_become_qrels_by_a_rule(rosa, researcher, collection, tmp_path):
    """Two of three are the majority; of two the lower grade; what nobody judged is -1."""
    collection.files.qrels().delete()
    text = "t0 ada a 2\nt0 ben a 1\nt0 cem a 0\nt0 ada b 1\nt0 ben b 0\nt0 ada c -1\n"
    file = add_file(collection, "jg.txt", text)
    assert rosa.get("/collections/tracks/").context["step"].url == FILES
    evaluation = rosa.get("/collections/tracks/evaluation/").context
    assert evaluation["problem"].code == "only_assessors"
    assert f'action="{FILES}{file.pk}/qrels/"' in rosa.get(FILES).content.decode()
    refused = rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "median"}, follow=True)
    assert message_codes(refused) == ["no_qrels_made"]
    rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "majority"})
    rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "any"})
    by_any, by_majority = collection.files.qrels().order_by("name")
    assert (by_majority.name, by_majority.rule, by_majority.is_usable) == (
        *("jg.txt, majority", "majority", True),
    )
    assert by_any.judgments == by_majority.judgments
    contents = {
        one.rule: b"".join(bytes(part.content) for part in one.parts.all()).decode()
        for one in (by_any, by_majority)
    }
    assert contents["majority"] == "t0 0 a 1\nt0 0 b 0\nt0 0 c -1\n"
    assert contents["any"] == "t0 0 a 2\nt0 0 b 1\nt0 0 c -1\n"
    step = rosa.get("/collections/tracks/").context["step"]
    assert step.url == "/collections/tracks/evaluation/"
    (tmp_path / "jg.txt").write_text(text)
    out, output = io.StringIO(), tmp_path / "merged"
    call_command("merge_assessors", tmp_path / "jg.txt", output=output, json=True, stdout=out)
    assert output.read_text() == contents["majority"]
    assert json.loads(out.getvalue())["n_unjudged"] == 1


def test_runs_are_not_evaluated_under_several_grades_of_a_document(tmp_path):
    qrels, run = tmp_path / "jg.txt", tmp_path / "bm25.run"
    qrels.write_text(grades_text(n_topics=2))
    run.write_text(run_text("bm25", n_topics=2))
    with pytest.raises(TrecFileFaults) as refused:
        call_command("evaluate_runs", "--qrels", str(qrels), "--run", str(run), "--measure", "AP")
    assert "compare_qrels --assessors" in str(refused.value)


@pytest.mark.slow
@pytest.mark.parametrize("with_qrels", [False, True])
def test_a_comparison_of_assessors_holds_what_the_command_prints(
    rosa, collection, tmp_path, with_qrels
):
    text = grades_text()
    file = add_file(collection, "jg.txt", text)
    qrels = [collection.files.qrels().get().pk] if with_qrels else []
    assert rosa.post(TRUST, form_of(collection, file, qrels=qrels)).status_code == 302
    options = ["--qrels", f"qrels.txt={tmp_path / 'qrels.txt'}"] if with_qrels else []
    said = said_by_command(tmp_path, *options, text=text)
    version = CollectionVersion.objects.get()
    one, row = said["assessors"], AnyTwoAssessors.objects.get(version=version)
    counts = ("n_assessors", "n_pairs_of_labels", "n_documents")
    assert {name: getattr(row, name) for name in counts} == {name: one[name] for name in counts}
    for name in ("overlap", "alpha"):
        keys = {"": "value", "_low": "ci_low", "_high": "ci_high"}
        for end, key in keys.items():
            assert getattr(row, f"{name}{end}") == pytest.approx(one[name][key])
        assert getattr(row, f"{name}_method") == one[name]["ci_method"]
    assert row.warnings.splitlines() == one["warnings"]
    kinds = list(version.compared_qrels.values_list("name", "kind"))
    assert kinds == [(each["name"], each["kind"]) for each in said["qrels"]]
    for pair in said["pairs"]:
        stored = RankingPair.objects.get(first=pair["first"], second=pair["second"])
        assert stored.coefficients.get(use="tau_b").value == pytest.approx(pair["tau_b"]["value"])
        assert stored.n_swapped == pair["n_swapped"]
    assert RankingPair.objects.count() == len(said["pairs"])
    [design], [drawn] = said["random_assessor"], version.designs.all()
    assert drawn.mean == pytest.approx(design["tau_b"]["mean"])
    assert drawn.q05 == pytest.approx(design["tau_b"]["q05"])
    crossed = {each.run: each for each in version.crossed.all()}
    assert len(crossed) == len(said["crossed"]) == 3
    for each in said["crossed"]:
        assert crossed[each["run"]].mean == pytest.approx(each["mean"])
        assert crossed[each["run"]].ci_low == pytest.approx(each["ci_low"])
    assert list(version.notes.values_list("text", flat=True)) == said["notes"]
    view = rosa.get(TRUST).context["view"]
    assert "any_two_assessors" in answer_codes(view)
    assert "any-two-assessors" in view.tables


def test_assessors_who_judged_some_topics_each_are_compared_by_what_is_derived(rosa, collection):
    """Nobody ranks the runs alone, so the page speaks of union, intersection and majority."""
    lines = grades_text().splitlines(keepends=True)
    left_out = {("ada", "t0"), ("ben", "t1"), ("cem", "t2")}
    text = "".join(line for line in lines if tuple(line.split()[1::-1]) not in left_out)
    rosa.post(TRUST, form_of(collection, add_file(collection, "jg.txt", text)))
    kinds = set(CollectionVersion.objects.get().compared_qrels.values_list("kind", flat=True))
    assert kinds == {"derived"}
    view = rosa.get(TRUST).context["view"]
    assert ("union", "intersection") in {(pair.first, pair.second) for pair in view.pairs}
    assert "pair" in answer_codes(view)


def test_without_two_qrels_or_several_assessors_nothing_is_compared(rosa, collection):
    file = add_file(collection, "jg.txt", grades_text())
    answer = rosa.post(TRUST, form_of(collection, file) | {"assessors": ""})
    assert answer.status_code == 422
    assert field_codes(answer.context["form"]) == {"__all__": ["too_few_qrels"]}
    assert not Job.objects.filter(kind="compare_collection_qrels").exists()
