"""How far to trust an evaluation, on a collection's pages: other qrels, reuse, audits."""

import csv
import io
import json
import re
from itertools import chain

import pytest
from django.core.management import call_command

from console.collections.audit_view import AuditView
from retrieval.collection_files import describe_file
from retrieval.models import (
    AnyTwoAssessors,
    AssessorDesign,
    AuditClaim,
    AuditFinding,
    CollectionFile,
    CollectionVersion,
    ComparedQrels,
    LeftOutEffect,
    MachineEstimate,
    PoolReplacement,
    PoolSlot,
    PoolStudy,
    RankingPair,
    ReuseExpectation,
)
from retrieval.reuse.machine import NO_SUM
from retrieval.stored_pools import request_pool
from retrieval.stored_reuse import depth_of_pool
from tests.annotation.studies import rating_study, ticked_study
from tests.console.collection_addresses import address_of
from tests.console.pages import words_of
from tests.retrieval.collections import (
    add_file,
    qrels_text,
    run_text,
    sent,
)
from validation.documents.documents import Number
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
TRUST, REUSE, AUDIT = (f"/collections/tracks/{name}/" for name in ("trust", "reuse", "audit"))
MACHINE = "/collections/tracks/machine/"
TABLES = "/collections/tracks/tables"
SKILLS = (("bm25", 0.5, 2), ("dense", 3.0, 1), ("rm3", 0.5, 3))


def form_of(collection, **more):
    files = collection.files.all()
    form = {
        "qrels": [file.pk for file in files.qrels()],
        "runs": [file.pk for file in files.runs()],
        "measures": ["nDCG@10"],
        "primary": "nDCG@10",
        "missing": "common",
        "ties": "falling",
        "seed": "0",
    }
    return form | more


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def command_output(name, *options):
    out = io.StringIO()
    call_command(name, *options, "--json", stdout=out)
    return json.loads(out.getvalue())


def run_options(tmp_path):
    for tag, skill, seed in SKILLS:
        yield from ("--run", written(tmp_path, f"{tag}.run", run_text(tag, skill=skill, seed=seed)))


def page_of(client, where):
    answer = client.get(where)
    assert answer.status_code == 200
    return words_of(answer.content.decode())


def test_a_comparison_holds_what_the_command_prints(rosa, collection, tmp_path):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    assert rosa.post(TRUST, form_of(collection)).status_code == 302
    first = written(tmp_path, "qrels.txt", qrels_text())
    second = written(tmp_path, "second.txt", qrels_text(relevant=7))
    said = command_output(
        "compare_qrels",
        *("--qrels", f"qrels.txt={first}", "--qrels", f"second.txt={second}"),
        *run_options(tmp_path),
        *("--measure", "nDCG@10", "--primary", "nDCG@10"),
    )
    for pair in said["pairs"]:
        row = RankingPair.objects.get(
            first=pair["first"], second=pair["second"], measure=pair["measure"]
        )
        for use in ("tau_b", "tau_ap", "rbo"):
            stored = row.coefficients.get(use=use)
            assert stored.value == pytest.approx(pair[use]["value"])
            assert stored.ci_low == pytest.approx(pair[use]["ci_low"])
        assert (row.n_swapped, row.n_kept) == (pair["n_swapped"], pair["significance"]["kept"])
    assert RankingPair.objects.count() == len(said["pairs"])


def test_what_rank_biased_overlap_takes_is_what_the_command_takes(rosa, collection, tmp_path):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    advanced = {"rbo_p": "0.5", "rbo_ties": "w", "n_resamples": "300", "n_draws": "200"}
    more = advanced | {"confidence": "0.9", "seed": "3"}
    assert rosa.post(TRUST, form_of(collection, **more)).status_code == 302
    first = written(tmp_path, "qrels.txt", qrels_text())
    second = written(tmp_path, "second.txt", qrels_text(relevant=7))
    said = command_output(
        "compare_qrels",
        *("--qrels", f"qrels.txt={first}", "--qrels", f"second.txt={second}"),
        *run_options(tmp_path),
        *("--measure", "nDCG@10", "--rbo-p", "0.5", "--rbo-ties", "w", "--resamples", "300"),
        *("--draws", "200", "--confidence", "0.9", "--seed", "3"),
    )
    for pair in said["pairs"]:
        row = RankingPair.objects.get(first=pair["first"], second=pair["second"])
        stored = row.coefficients.get(use="rbo")
        assert stored.value == pytest.approx(pair["rbo"]["value"])
        assert stored.ci_low == pytest.approx(pair["rbo"]["ci_low"])
    assert [one.n_draws for one in AssessorDesign.objects.all()] == [200]
    page = page_of(rosa, TRUST)
    assert "RBO with p = 0.5, ties by variant w" in page
    assert "|n_draws:200|n_resamples:300|" in page
    assert "|rbo_p:0.5|rbo_ties:w|" in page


def test_reuse_keeps_its_confidence(rosa, collection):
    form = form_of(collection, pool_depth="10", confidence="0.9")
    form["qrels"] = form["qrels"][0]
    assert rosa.post(REUSE, form).status_code == 302
    assert CollectionVersion.objects.get().rules["confidence"] == 0.9
    assert "|confidence:0.9|" in page_of(rosa, REUSE)


def test_qrels_that_order_runs_alike_are_said_to(rosa, collection):
    add_file(collection, "second.txt", qrels_text(relevant=5, judged=29))
    rosa.post(TRUST, form_of(collection))
    page = page_of(rosa, TRUST)
    assert "The runs come in the same order by nDCG@10 under “qrels.txt” and “second.txt”." in page
    assert "tau-b 1.000" in page


def test_qrels_under_which_another_run_is_better_are_said_to_change_the_answer(rosa, collection):
    """The second assessor finds relevant what the first does not, and the other way round."""
    turned = "".join(
        f"t{topic} 0 d{document} {int(document >= 25)}\n"
        for topic in range(25)
        for document in range(30)
    )
    add_file(collection, "turned.txt", turned)
    rosa.post(TRUST, form_of(collection))
    page = page_of(rosa, TRUST)
    assert "Who judged changes which run is better by nDCG@10." in page
    assert "significant the other way" in page


def test_a_machines_qrels_are_never_merged_with_peoples_and_are_named(rosa, collection):
    machine = add_file(collection, "machine.txt", qrels_text(relevant=7))
    CollectionFile.objects.filter(pk=machine.pk).update(made_by="machine")
    rosa.post(TRUST, form_of(collection))
    version = CollectionVersion.objects.get()
    kinds = dict(version.compared_qrels.values_list("name", "kind"))
    assert kinds == {"qrels.txt": "given", "machine.txt": "machine"}
    assert "“machine.txt”: a machine judged." in page_of(rosa, TRUST)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"top": "1"}, "greater than or equal to 2"),
        ({"rbo_p": "1"}, "less than or equal to 0.999"),
        ({"n_draws": "9"}, "greater than or equal to 100"),
        ({"measures": []}, "Choose at least one measure."),
        ({"one_run": True}, "Choose two runs or more"),
        ({"one_qrels": True}, "Choose two qrels or more"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_reason(rosa, collection, more, said):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    form = form_of(collection)
    form["runs"] = form["runs"][:1] if more.pop("one_run", False) else form["runs"]
    form["qrels"] = form["qrels"][:1] if more.pop("one_qrels", False) else form["qrels"]
    answer = rosa.post(TRUST, form | more)
    assert answer.status_code == 422
    assert said in words_of(answer.content.decode())
    assert not Job.objects.filter(kind="compare_collection_qrels").exists()


def test_qrels_without_a_common_topic_are_refused_on_the_page(rosa, collection):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    add_file(collection, "others.txt", "x1 0 d1 1\nx2 0 d1 1\n")
    answer = rosa.post(TRUST, form_of(collection))
    assert answer.status_code == 422
    assert "The qrels have no topic in common." in words_of(answer.content.decode())
    assert not Job.objects.filter(kind="compare_collection_qrels").exists()


def test_with_one_set_of_qrels_the_page_says_what_is_missing(rosa, collection):
    assert "A comparison needs two runs and two qrels" in page_of(rosa, TRUST)


def test_reuse_holds_what_the_command_prints(rosa, collection, tmp_path):
    collection.files.filter(name__in=["bm25", "rm3"]).update(family="lexical")
    qrels = collection.files.get(name="qrels.txt").pk
    answer = rosa.post(REUSE, form_of(collection, qrels=qrels, pool_depth="10"))
    assert answer.status_code == 302
    said = command_output(
        "evaluate_runs",
        *("--qrels", written(tmp_path, "qrels.txt", qrels_text())),
        *run_options(tmp_path),
        *("--measure", "nDCG@10", "--reusability", "--pool-depth", "10"),
        *("--group", "lexical=bm25,rm3"),
    )["reusability"]
    stored = {(one.measure, one.unit): one for one in ReuseExpectation.objects.all()}
    assert len(stored) == len(said["expectations"])
    for one in said["expectations"]:
        assert stored[one["measure"], one["unit"]].underestimate == pytest.approx(
            one["underestimate"]
        )
    n_effects = sum(len(unit["effects"]) for unit in said["left_out"])
    assert LeftOutEffect.objects.count() == n_effects
    page = page_of(rosa, REUSE)
    assert re.search(r"Expect nDCG@10 of an outside system to be \d\.\d{3} too (low|high)\.", page)
    assert "families left out" in page
    assert "What each run loses outside the pool" in page
    drawn = {
        name: rosa.get(address_of("collection-reuse-picture").replace("left-out.json", name))
        for name in ("left-out.csv", "depths.csv", "left-out.svg", "none.csv")
    }
    changes = {
        (row["run"], row["unit"]): float(row["change"])
        for row in csv.DictReader(drawn["left-out.csv"].content.decode().splitlines())
    }
    effects = LeftOutEffect.objects.filter(is_left_out=True, measure="nDCG@10")
    assert changes == {(one.run, one.unit.unit): pytest.approx(one.change) for one in effects}
    assert drawn["depths.csv"].content.decode().startswith("depth,n_judged,n_relevant")
    assert b"<svg" in drawn["left-out.svg"].content
    assert drawn["none.csv"].status_code == 404


def test_a_pool_of_which_nothing_is_known_is_refused_on_the_page(rosa, collection):
    shallow = add_file(collection, "shallow.txt", "t0 0 d99 1\n")
    rosa.post(REUSE, form_of(collection, qrels=shallow.pk))
    page = page_of(rosa, REUSE)
    assert "Leaving systems out failed." in page
    assert "Not all first documents of the runs are in shallow.txt" in page
    assert "Under “Depth of the pool”, type how many" in page
    assert "--pool-depth" not in page


def test_runs_that_begin_with_their_target_are_left_out_once_the_depth_is_typed(rosa, collection):
    collection.files.runs().delete()
    for tag, skill, seed in SKILLS:
        own = "".join(f"t{topic} Q0 target{topic} 0 99 {tag}\n" for topic in range(25))
        add_file(collection, f"{tag}.run", own + run_text(tag, skill=skill, seed=seed))
    form = form_of(collection, qrels=collection.files.qrels().get().pk)
    rosa.post(REUSE, form)
    assert "where every run begins with its own target" in page_of(rosa, REUSE)
    assert not CollectionVersion.objects.exists()
    rosa.post(REUSE, form | {"pool_depth": "11"})
    assert CollectionVersion.objects.get().pool.pool_depth == 11
    assert "of an outside system to be" in page_of(rosa, REUSE)


def test_a_single_run_cannot_be_left_out_of_its_pool(rosa, collection):
    form = form_of(collection, qrels=collection.files.qrels().get().pk)
    answer = rosa.post(REUSE, form | {"outside": form["runs"][:2]})
    assert answer.status_code == 422
    assert "Choose two pooled runs or more" in words_of(answer.content.decode())


def test_a_machines_labels_stand_beside_peoples_as_the_command_has_them(rosa, collection, tmp_path):
    machine = add_file(collection, "machine.txt", qrels_text(relevant=9))
    CollectionFile.objects.filter(pk=machine.pk).update(made_by="machine")
    sample = add_file(collection, "sample.txt", qrels_text(n_topics=15))
    sharing = collection.files.get(name="dense").pk
    form = form_of(collection, qrels=sample.pk, machine=machine.pk, sharing=[sharing])
    assert rosa.post(MACHINE, form).status_code == 302
    said = command_output(
        "evaluate_runs",
        *("--qrels", written(tmp_path, "sample.txt", qrels_text(n_topics=15))),
        *("--machine", written(tmp_path, "machine.txt", qrels_text(relevant=9))),
        *run_options(tmp_path),
        *("--measure", "nDCG@10", "--shares-model", "dense"),
    )["machine"]
    stored = {one.run: one for one in MachineEstimate.objects.all()}
    assert len(stored) == len(said["estimates"]) == 3
    for one in said["estimates"]:
        row = stored[one["run"]]
        for name in ("machine_mean", "people_mean", "calibrated", "calibrated_ci_low"):
            assert getattr(row, name) == pytest.approx(one[name]), name
    page = page_of(rosa, MACHINE)
    assert "People judged 15 topics, the machine 25; both judged 15." in page
    assert "by people and by the machine: tau-b" in page
    for low, high, side in ((0.1, 0.2, "higher"), (-0.2, -0.1, "lower")):
        MachineEstimate.objects.update(gap_ci_low=low, gap_ci_high=high)
        page = page_of(rosa, MACHINE)
        assert f"The machine's nDCG@10 is {side} than people's for every run." in page
    MachineEstimate.objects.filter(run="bm25").update(gap_ci_low=-0.1, gap_ci_high=0.1)
    page = page_of(rosa, MACHINE)
    assert "nDCG@10 is neither higher than people's for every run nor lower for" in page
    assert "What was drawn for people" not in page.partition("Compute otherwise")[0]
    MachineEstimate.objects.update(reason=NO_SUM)
    assert "nDCG@10 depends on all documents of a topic. Where people judged whole topics" in (
        page_of(rosa, MACHINE)
    )
    MachineEstimate.objects.update(gap_ci_low=None, gap_ci_high=None, reason="one topic")
    page = page_of(rosa, MACHINE)
    assert "How far the machine's nDCG@10 is from people's is not known: one topic." in page


def test_without_a_machines_qrels_the_page_says_what_is_missing(rosa, collection):
    page = page_of(rosa, MACHINE)
    assert "qrels that say they are by a machine: open such a file by its name" in page


def test_an_audit_says_what_would_be_misread_and_keeps_no_file(rosa, collection):
    bad = run_text("dense", n_topics=2).replace("t0 Q0", "t0 Q0 extra", 1)
    files = [sent("bad.run", bad), sent("notes.md", "hello\n"), sent("q.txt", qrels_text())]
    assert rosa.post(AUDIT, {"uploads": files}).status_code == 302
    page = page_of(rosa, AUDIT)
    assert "1 file would be misread, and cannot be used as it is." in page
    assert "Line 1: it has 7 columns" in page
    assert "Not recognised: notes.md." in page
    assert not collection.files.filter(kind="audited").exists()
    names = set(CollectionVersion.objects.get().files.values_list("name", flat=True))
    assert names == {"bad.run", "notes.md", "q.txt"}


def test_an_audit_takes_the_collections_own_files_and_leaves_them(rosa, collection):
    stored = [file.pk for file in collection.files.all()]
    rosa.post(AUDIT, {"stored": stored})
    assert collection.files.count() == 4
    assert CollectionVersion.objects.get().audited_files.count() == 4
    page = page_of(rosa, AUDIT)
    assert "4 files were read." in page


POOLS = (
    "Input.target1,Input.top1,Input.top2,HITId,WorkerId,top1,top2\n"
    "boot,clog,pump,H1,W1,True,True\ngown,coat,sole,H2,W1,True,False\n"
)


def test_published_numbers_are_answered_claim_by_claim(rosa, collection):
    claims = "judged.csv:assessed=2\n\njudged.csv:mean_relevant=2.5\njudged.csv:prevalence=0.1"
    form = {"uploads": [sent("judged.csv", POOLS)], "claims": claims}
    assert rosa.post(AUDIT, form).status_code == 302
    kept = {one.name: one.explanation for one in AuditClaim.objects.all()}
    assert kept["assessed"] == ""
    assert kept["mean_relevant"] == "1.50 + 1 = 2.50: the target itself was counted as relevant"
    assert kept["prevalence"] == "no way of counting tried here gives it"
    page = page_of(rosa, AUDIT)
    assert "2 published numbers are not what the files give." in page
    assert "Published numbers, claim by claim" in page
    assert "judged.csv topics assessed 2 2 so it is" in page
    assert CollectionVersion.objects.get().rules == {
        "claims": {"judged.csv": {"assessed": "2", "mean_relevant": "2.5", "prevalence": "0.1"}}
    }


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ("judged.csv:assessed=2\njudged.csv:size=2", "Line 2: judged.csv:size=2: it is not FILE"),
        ("judged.csv:assessed=many", "Line 1: judged.csv:assessed=many: it is not FILE"),
        ("other.csv:assessed=2", "other.csv is none of the files to audit."),
    ],
)
def test_a_claim_that_cannot_be_checked_is_refused_by_its_line(rosa, collection, claims, said):
    form = {"uploads": [sent("judged.csv", POOLS)], "claims": claims}
    answer = rosa.post(AUDIT, form)
    assert answer.status_code == 422
    assert said in words_of(answer.content.decode())
    assert not collection.files.filter(kind="audited").exists()


def test_a_claim_of_what_holds_no_pools_is_said_not_to_be_checked(rosa, collection):
    form = {"uploads": [sent("q.txt", qrels_text())], "claims": "q.txt:assessed=25"}
    rosa.post(AUDIT, form)
    assert "which could not be checked" in page_of(rosa, AUDIT)


def test_several_assessors_grades_are_audited_as_such(rosa, collection):
    """Two of three documents that both judged have the same grade."""
    text = "".join(
        f"t1 {who} d{number} {int(number < most)}\n"
        for who, most in (("Ann", 1), ("Bob", 2))
        for number in range(3)
    )
    rosa.post(AUDIT, {"uploads": [sent("all.qrels", text)]})
    page = page_of(rosa, AUDIT)
    assert "several assessors' grades: no defect" in page
    assert "column 2 names 2 assessors, and 3 of 3 documents have several grades" in page
    assert "overlap 0.500" in page
    assert "not read as qrels, so merge them by a rule first" in page


def test_what_an_audit_counted_is_in_tables_of_words_and_numbers(rosa, collection):
    """Twelve pools of the same two pictures, which are its hubs."""
    rows = "".join(f"t{n},hub,other,h{n},{n < 6},{n < 3}\n" for n in range(12))
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    rosa.post(AUDIT, {"uploads": [sent("judged.csv", header + rows)]})
    [file] = AuditView(CollectionVersion.objects.get()).files
    tables = {table.name.rpartition("-")[0]: table for table in file.numbers}
    assert tables["hubs-largest"].rows == [("hub", Number(12, 0)), ("other", Number(12, 0))]
    counted = {(of, name): value for of, name, value in tables["numbers"].rows}
    assert counted["hubs", "share of slots"] == Number(1, 0)
    texts = [cell for cell in chain(*chain(*(table.rows for table in file.numbers)))
             if isinstance(cell, str)]  # fmt: skip
    assert not any("{" in text or "_" in text or len(text) > 60 for text in texts), texts
    assert "largest hubs of judged.csv" in page_of(rosa, AUDIT)


def test_rows_that_an_audit_could_not_read_are_not_counted_as_looked_at(rosa, collection):
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    rows = "a,b,b,h1,True,False\nc,d,e,h2,True,False\na,a,a,h3,yes,\n"
    rosa.post(AUDIT, {"uploads": [sent("judged.csv", header + rows)]})
    page = page_of(rosa, AUDIT)
    assert "1 of 2 rows of judged pools show a picture more than once, 0 the target" in page
    assert "1 more row could not be read: what it shows is not known." in page


def test_an_audit_of_nothing_is_refused(rosa, collection):
    answer = rosa.post(AUDIT, {})
    assert answer.status_code == 422
    assert "Choose at least one file to audit." in words_of(answer.content.decode())


@pytest.mark.shared_data
def test_the_audit_of_a_released_collection_counts_its_defects(rosa, collection, shared_data):
    """Fashion-AlterEval's files: a picture twice in a page, and targets as their own candidates."""
    names = sorted((shared_data / "altereval").glob("*.csv"))
    rosa.post(AUDIT, {"uploads": [sent(path.name, path.read_bytes()) for path in names]})
    version = CollectionVersion.objects.get()
    assert version.audited_files.count() == len(names)
    of_pools = AuditFinding.objects.filter(file__kind="judged pools", severity="defect")
    assert sum(of_pools.filter(name="repeated_picture").values_list("n", flat=True)) == 128
    assert sum(of_pools.filter(name="target_in_pool").values_list("n", flat=True)) == 51
    page = page_of(rosa, AUDIT)
    assert "{'" not in page
    assert "jackknife-t" not in page
    assert "kinds of defects were found." in page
    assert "128 of 399 rows of judged pools show a picture more than once, 51 the target" in page


def test_compared_qrels_say_whose_judgments_they_were_made_of(rosa, researcher, collection):
    study = rating_study("plates", owner=researcher, n_items=1)
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    described = {"rule": "majority", "round": "2"}
    describe_file(file=second, actor=researcher, assessor="Ann", **described)
    third = add_file(collection, "third.txt", qrels_text(relevant=8))
    collection.files.filter(pk=third.pk).update(study=study, round="1", rule="any")
    answer = rosa.post(TRUST, form_of(collection))
    assert answer.status_code == 302
    rows = {one.name: one for one in ComparedQrels.objects.all()}
    whose = {name: (one.judgments, one.assessor, one.rule) for name, one in rows.items()}
    assert whose["qrels.txt"] == ("", "", "")
    assert whose["second.txt"] == ("Ann, round 2", "Ann", "majority")
    assert whose["third.txt"] == ("plates, round 1", "", "any")
    assert whose["union"][:2] == ("", "")


def test_qrels_that_are_described_anew_are_compared_anew(rosa, researcher, collection):
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    rosa.post(TRUST, form_of(collection))
    rosa.post(TRUST, form_of(collection))
    comparisons = CollectionVersion.objects.filter(kind="comparison")
    assert comparisons.count() == 1
    describe_file(file=second, actor=researcher, assessor="Ann")
    rosa.post(TRUST, form_of(collection))
    assert comparisons.count() == 2


def test_rules_of_the_same_judgments_count_as_one_assessor(rosa, researcher, collection):
    study = ticked_study(owner=researcher, team=collection.team)
    collection.files.filter(name="qrels.txt").delete()
    for name, relevant, rule in (("one-any", 7, "any"), ("one-majority", 5, "majority")):
        file = add_file(collection, name, qrels_text(relevant=relevant))
        file.study, file.round, file.rule = study, "1", rule
        file.save()
    assert rosa.post(TRUST, form_of(collection)).status_code == 302
    job = Job.objects.get(kind="compare_collection_qrels")
    assert (job.state, job.message) == (Job.State.DONE, "Result 1.")
    version = CollectionVersion.objects.get(kind="comparison")
    assert not AnyTwoAssessors.objects.exists()
    assert set(version.compared_qrels.values_list("name", flat=True)) == {"one-any", "one-majority"}
    [note] = version.notes.filter(text__contains="the same judgments")
    assert note.text.startswith("one-any, one-majority are the same judgments (")
    other = add_file(collection, "other", qrels_text(relevant=6))
    other.assessor = "Bob"
    other.save()
    rosa.post(TRUST, form_of(collection))
    latest = CollectionVersion.objects.filter(kind="comparison").latest("number")
    assert AnyTwoAssessors.objects.get(version=latest).n_assessors == 2


def test_the_choices_of_an_estimate_that_failed_are_offered_again(rosa, collection):
    add_file(collection, "few.txt", qrels_text(judged=2, relevant=1))
    few = collection.files.get(name="few.txt")
    outside = collection.files.get(name="rm3")
    form = form_of(collection, qrels=few.pk, measures=["P@5"], primary="P@5", seed="3")
    assert rosa.post(REUSE, form | {"outside": [outside.pk]}).status_code == 302
    job = Job.objects.get(kind="estimate_collection_reuse")
    assert job.state == Job.State.FAILED
    offered = rosa.get(REUSE).context["form"]
    assert offered["qrels"].value() == str(few.pk)
    assert offered["measures"].value() == ["P@5"]
    assert offered["outside"].value() == [str(outside.pk)]
    assert (offered["seed"].value(), offered["primary"].value()) == (3, "P@5")


@pytest.mark.parametrize("rules", [{"depth": 4}, {"quotas": {"dense": 4}}])
def test_the_depth_of_a_pool_that_was_made_here_is_known(researcher, collection, rules):
    runs = [collection.files.get(name="dense")]
    request_pool(collection=collection, files=runs, rules=rules | {"seed": 7}, actor=researcher)
    version = CollectionVersion.objects.get(kind="pool")
    study = ticked_study(owner=researcher, team=collection.team)
    PoolStudy.objects.create(version=version, study=study)
    qrels = collection.files.get(name="qrels.txt")
    assert depth_of_pool([qrels, *runs]) is None
    qrels.study = study
    assert depth_of_pool([qrels, *runs]) == 4


def test_a_file_that_is_not_recognised_has_no_tick(rosa, collection):
    rosa.post(AUDIT, {"uploads": [sent("notes.txt", "five words in a line\n")]})
    page = rosa.get(AUDIT).content.decode()
    assert "not recognised, not audited" in page
    assert "✓</span> notes.txt" not in page


def test_few_runs_are_said_to_say_little(rosa, collection):
    """Of three runs one order in six comes by chance."""
    add_file(collection, "second.txt", qrels_text(relevant=7))
    rosa.post(TRUST, form_of(collection))
    said = "3 runs say little: they have 3 pairs, tau-b moves by 0.67 with one swap, and two"
    assert said in page_of(rosa, TRUST)
    assert "are the same once in 6 times" in page_of(rosa, TRUST)
    for seed in range(4, 7):
        add_file(collection, f"r{seed}.run", run_text(f"r{seed}", seed=seed))
    rosa.post(TRUST, form_of(collection))
    assert "runs say little" not in page_of(rosa, TRUST)


def test_of_a_pool_by_quotas_a_run_is_left_out_with_what_the_pool_took_of_it(
    rosa, researcher, collection
):
    """By the pool's record: what a run alone filled goes, what another came by in it stays."""
    files = collection.files.all()
    pooled = [files.get(name=name) for name in ("bm25", "dense")]
    rules = {"quotas": {"bm25": 3, "dense": 3}, "seed": 7}
    request_pool(collection=collection, files=pooled, rules=rules, actor=researcher)
    version = CollectionVersion.objects.get(kind="pool")
    slots = list(PoolSlot.objects.filter(topic__version=version).select_related("topic"))
    lines = [f"{slot.topic.topic} 0 {slot.docno} {slot.slot % 2}" for slot in slots]
    qrels = add_file(collection, "judged.txt", "\n".join(lines) + "\n")
    qrels.study = ticked_study(owner=researcher, team=collection.team)
    qrels.save()
    PoolStudy.objects.create(version=version, study=qrels.study)
    late = files.get(name="rm3")
    form = form_of(collection, qrels=qrels.pk)
    rosa.post(REUSE, form)
    refused = page_of(rosa, REUSE)
    assert f"Pool {version.number}, which these qrels are of, took nothing from rm3." in refused
    rosa.post(REUSE, form | {"outside": [late.pk]})
    [reuse] = CollectionVersion.objects.filter(kind="reuse")
    passed = {
        (one.topic_id, one.docno, one.source)
        for one in PoolReplacement.objects.filter(topic__version=version, reason="pooled")
    }
    assert passed
    for name, other in (("bm25", "dense"), ("dense", "bm25")):
        own = [slot for slot in slots if slot.source == name]
        alone = [slot for slot in own if (slot.topic_id, slot.docno, other) not in passed]
        assert len(alone) < len(own)
        assert reuse.left_out.get(name=name).n_judged_lost == len(alone)
    page = page_of(rosa, REUSE)
    assert "What a run brought is what the pool took of it, topic by topic" in page
    assert "The pool is shallow" not in page
    for depth, said in (
        ("500", "The pool cannot be 500 documents deep: no pooled run lists more than 20"),
        ("20", "The pool was hardly 20 documents deep"),
    ):
        rosa.post(REUSE, form | {"outside": [late.pk], "pool_depth": depth})
        assert said in page_of(rosa, REUSE)
    pooled[0].name, late.name = "its new name", "bm25"  # the pool has what it was called then
    pooled[0].save()
    late.save()
    rosa.post(REUSE, form | {"outside": [late.pk]})
    renamed = CollectionVersion.objects.filter(kind="reuse").latest("pk").left_out
    lost = reuse.left_out.get(name="bm25").n_judged_lost
    assert renamed.get(name="its new name").n_judged_lost == lost
    rosa.post(REUSE, form)
    assert "took nothing from bm25." in page_of(rosa, REUSE)


def test_a_depth_that_was_assumed_is_said_with_whose_relevant_documents_its_last_rank_brought(
    rosa, collection
):
    rosa.post(REUSE, form_of(collection, qrels=collection.files.get(name="qrels.txt").pk))
    page = page_of(rosa, REUSE)
    assert "How deep the runs were pooled is not known: rank" in page
    assert "of all relevant documents" not in page


def test_the_choices_of_a_result_are_offered_again_with_what_came_since(rosa, collection):
    """A second try with one change is not filled in anew, and by oversight of other qrels."""
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    rm3 = collection.files.get(name="rm3")
    form = form_of(collection, qrels=second.pk, measures=["P@5"], primary="P@5")
    rosa.post("/collections/tracks/evaluation/", form)
    offered = rosa.get("/collections/tracks/evaluation/").context["form"]
    assert (offered["qrels"].value(), offered["measures"].value()) == (str(second.pk), ["P@5"])
    assert rosa.get(REUSE).context["form"]["qrels"].value() == str(second.pk)
    rosa.post(REUSE, form | {"outside": [rm3.pk], "pool_depth": "9"})
    late = add_file(collection, "late.run", run_text("late", skill=1.0, seed=9))
    offered = rosa.get(REUSE).context["form"]
    assert offered["outside"].value() == [str(rm3.pk)]
    assert offered["pool_depth"].value() == 9
    assert str(late.pk) in offered["runs"].value()


def test_a_comparison_says_how_many_decided_differences_hold(rosa, collection):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    rosa.post(TRUST, form_of(collection))
    names = ["qrels.txt", "second.txt"]
    pairs = RankingPair.objects.filter(first__in=names, second__in=names)
    pair = pairs.get(measure="nDCG@10")
    decided = pair.n_kept + pair.n_lost + pair.n_reversed
    assert decided
    said = f"Of {decided} differences that a test decided under the first, {pair.n_kept} are"
    assert said in page_of(rosa, TRUST)
    RankingPair.objects.update(n_kept=0, n_lost=0, n_reversed=0)
    assert "No test decided any difference under the first." in page_of(rosa, TRUST)


def test_an_empty_file_among_several_is_named(rosa, collection):
    uploads = [sent("good.txt", qrels_text()), sent("empty.txt", "")]
    answer = rosa.post(AUDIT, {"uploads": uploads})
    assert "empty.txt: The file is empty." in words_of(answer.content.decode())
