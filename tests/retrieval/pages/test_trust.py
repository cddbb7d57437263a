import re
from itertools import chain

import numpy as np
import pytest

from presentation.documents import Number
from presentation.numbers import format_number
from results.models import Result, pack_record
from retrieval.answers.audit import list_files, words_of
from retrieval.models import CollectionFile, PoolReplacement, PoolSlot, PoolStudy
from retrieval.result_kinds.comparison import list_compared
from retrieval.result_kinds.pools import request_pool
from retrieval.reuse.machine import NO_SUM
from retrieval.reuse.stored_runs import find_pool_depth
from retrieval.stored_files import describe_file
from tests.annotation.studies import rating_study, ticked_study
from tests.codes import codes_of, message_codes
from tests.console.addresses import address
from tests.console.pages import answer_codes, refused_fields, rows_of
from tests.retrieval.collections import (
    SKILLS,
    add_file,
    content_of,
    qrels_text,
    run_options,
    run_text,
    sent,
)
from tests.retrieval.conftest import record_of
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
TRUST, REUSE, AUDIT = (f"/collections/tracks/{name}/" for name in ("trust", "reuse", "audit"))
MACHINE = "/collections/tracks/machine/"
FILES = "/collections/tracks/files/"


def form_of(collection, **more):
    files = collection.files.all()
    form = {
        "qrels": [file.pk for file in files.qrels()],
        "runs": [file.pk for file in files.runs()],
    }
    form |= {"measures": ["nDCG@10"], "primary": "nDCG@10", "missing": "common", "ties": "falling"}
    return form | {"seed": "0"} | more


def view_of(client, where):
    answer = client.get(where)
    assert answer.status_code == 200
    return answer.context["view"]


def codes_at(client, where):
    return answer_codes(view_of(client, where))


def failed_message(client, where):
    job = client.get(where).context["job"]
    assert job.state == Job.State.FAILED
    return job.message


def test_a_comparison_has_what_the_command_prints_with_the_same_settings(
    rosa, collection, tmp_path, file
):
    add_file(collection, "second.txt", qrels_text(relevant=7))
    advanced = {"rbo_p": "0.5", "rbo_ties": "w", "n_resamples": "300", "n_draws": "200"}
    form = form_of(collection, **advanced, confidence="0.9", seed="3")
    assert rosa.post(TRUST, form).status_code == 302
    said = record_of(
        *("compare_qrels", "--qrels", f"qrels.txt={file('qrels.txt', qrels_text())}"),
        *("--qrels", f"second.txt={file('second.txt', qrels_text(relevant=7))}"),
        *run_options(tmp_path),
        *("--measure", "nDCG@10", "--primary", "nDCG@10"),
        *("--rbo-p", "0.5", "--rbo-ties", "w", "--resamples", "300"),
        *("--draws", "200", "--confidence", "0.9", "--seed", "3"),
    )
    stored = Result.objects.get().record
    for part in ("pairs", "rankings", "labels", "random_assessor", "crossed"):
        assert stored[part] == said[part], part
    assert {one["n_draws"] for one in stored["random_assessor"]} == {200}
    view = view_of(rosa, TRUST)
    assert "|n_draws:200|n_resamples:300|" in view.signature
    assert "|rbo_p:0.5|rbo_ties:w|" in view.signature
    assert "few_runs" in answer_codes(view)
    for seed in range(4, 7):
        add_file(collection, f"r{seed}.run", run_text(f"r{seed}", seed=seed))
    rosa.post(TRUST, form_of(collection))
    assert "few_runs" not in codes_at(rosa, TRUST)


def test_qrels_that_order_runs_alike_are_told_from_those_that_do_not(rosa, collection):
    """In the last file what the others find relevant is not, and the other way round."""
    second = add_file(collection, "second.txt", qrels_text(relevant=5, judged=29))
    rosa.post(TRUST, form_of(collection))
    view = view_of(rosa, TRUST)
    assert view.answer.code == "same_order"
    assert list_compared(view.result) == ["qrels.txt", "second.txt"]
    names = {"first": "qrels.txt", "second": "second.txt"}
    [pair] = [one for one in view.rows["rankings_compared"] if one | names == one]
    assert pair["tau_b"]["value"] == 1.0
    second.delete()
    lines = (f"t{t} 0 d{document} {int(document >= 25)}\n" for t, document in np.ndindex(25, 30))
    add_file(collection, "turned.txt", "".join(lines))
    rosa.post(TRUST, form_of(collection))
    view = view_of(rosa, TRUST)
    assert view.answer.code == "decided_order_changes"
    assert "reversed" in {one["change"] for one in view.rows["changed_pairs"]}


def test_what_is_missing_or_cannot_be_compared_is_refused_with_its_reason(rosa, collection):
    for where, code in ((TRUST, "comparison_needs"), (MACHINE, "machine_needs")):
        assert rosa.get(where).context["problem"].code == code
    add_file(collection, "second.txt", qrels_text(relevant=7))
    form = form_of(collection)
    other = add_file(collection, "others.txt", "x1 0 d1 1\nx2 0 d1 1\n")
    for more, codes in (
        ({"top": "1"}, {"top": ["min_value"]}),
        ({"rbo_p": "1"}, {"rbo_p": ["max_value"]}),
        ({"measures": []}, {"measures": ["no_measure"]}),
        ({"runs": form["runs"][:1]}, {"__all__": ["too_few_runs"]}),
        ({"qrels": form["qrels"][:1]}, {"__all__": ["too_few_qrels"]}),
        ({"qrels": [*form["qrels"], other.pk]}, {"__all__": ["no_common_topic"]}),
    ):
        assert refused_fields(rosa.post(TRUST, form | more)) == codes
    assert not Job.objects.filter(kind="compare_collection_qrels").exists()
    # A single run cannot be left out of its pool.
    qrels = collection.files.get(name="qrels.txt").pk
    answer = rosa.post(REUSE, form | {"qrels": qrels, "outside": form["runs"][:2]})
    assert refused_fields(answer) == {"__all__": ["too_few_runs"]}


def test_reuse_holds_what_the_command_prints(rosa, collection, tmp_path, file):
    collection.files.filter(name__in=["bm25", "rm3"]).update(family="lexical")
    qrels = collection.files.get(name="qrels.txt").pk
    assert rosa.post(REUSE, form_of(collection, qrels=qrels, pool_depth="10")).status_code == 302
    said = record_of(
        *("evaluate_runs", "--qrels", file("qrels.txt", qrels_text()), *run_options(tmp_path)),
        *("--measure", "nDCG@10", "--reusability", "--pool-depth", "10"),
        *("--group", "lexical=bm25,rm3"),
    )["reusability"]
    stored = Result.objects.get().record
    assert stored["expectations"] == said["expectations"]
    for part in ("systems", "depths", "sources"):
        assert sorted(stored[part], key=str) == sorted(said[part], key=str)
    lost = [
        sorted((one["name"], one["n_judged_lost"]) for one in record["left_out"])
        for record in (stored, said)
    ]
    assert lost[0] == lost[1]
    view = view_of(rosa, REUSE)
    assert view.answer.code in ("too_low", "too_high")
    main_row = {"measure": "nDCG@10", "unit": "group"}
    [main] = [one for one in stored["expectations"] if one | main_row == one]
    assert format_number(abs(main["underestimate"])) in view.answer
    assert view.charts[0].name == "left-out"
    drawn = {
        name: rosa.get(address("collection-reuse-picture").replace("left-out.json", name))
        for name in ("left-out.csv", "depths.csv", "left-out.svg", "none.csv")
    }
    changes = {
        (row["run"], row["unit"]): float(row["change"]) for row in rows_of(drawn["left-out.csv"])
    }
    effects = [one for one in view.rows["left_out"] if one["measure"] == "nDCG@10"]
    assert changes == {(one["run"], one["unit"]): one["change"] for one in effects}
    assert drawn["depths.csv"].content.decode().startswith("depth,n_judged,n_relevant")
    assert b"<svg" in drawn["left-out.svg"].content
    assert drawn["none.csv"].status_code == 404


def test_a_pool_of_unknown_depth_is_refused_until_the_depth_is_typed(rosa, collection):
    """The runs begin with their target, which nobody judged."""
    collection.files.runs().delete()
    for tag, skill, seed in sorted(SKILLS):
        own = "".join(f"t{topic} Q0 target{topic} 0 99 {tag}\n" for topic in range(25))
        add_file(collection, f"{tag}.run", own + run_text(tag, skill=skill, seed=seed))
    form = form_of(collection, qrels=collection.files.qrels().get().pk)
    rosa.post(REUSE, form)
    message = failed_message(rosa, REUSE)
    assert "qrels.txt" in message
    assert "--pool-depth" not in message
    assert not Result.objects.exists()
    rosa.post(REUSE, form | {"pool_depth": "11"})
    assert Result.objects.get().record["pool_depth"] == 11
    assert view_of(rosa, REUSE).answer.code in ("too_low", "too_high", "unbiased")


def change_estimates(*, run="", **values):
    result = Result.objects.get()
    estimates = result.record["estimates"]
    changed = [one | values if run in ("", one["run"]) else one for one in estimates]
    result.packed_record = pack_record(result.record | {"estimates": changed})
    result.save()


def test_a_machines_labels_stand_beside_peoples_as_the_command_has_them(
    rosa, collection, tmp_path, file
):
    machine = add_file(collection, "machine.txt", qrels_text(relevant=9))
    CollectionFile.objects.filter(pk=machine.pk).update(made_by="machine")
    sample = add_file(collection, "sample.txt", qrels_text(n_topics=15))
    sharing = collection.files.get(name="dense").pk
    form = form_of(collection, qrels=sample.pk, machine=machine.pk, sharing=[sharing])
    assert rosa.post(MACHINE, form).status_code == 302
    said = record_of(
        *("evaluate_runs", "--qrels", file("sample.txt", qrels_text(n_topics=15))),
        *("--machine", file("machine.txt", qrels_text(relevant=9)), *run_options(tmp_path)),
        *("--measure", "nDCG@10", "--shares-model", "dense"),
    )["machine"]
    stored = Result.objects.get().record
    assert sorted(stored["estimates"], key=str) == sorted(said["estimates"], key=str)
    assert [stored[f"n_topics_{who}"] for who in ("people", "machine", "both")] == [15, 25, 15]
    assert "order" in codes_at(rosa, MACHINE)
    for low, high, side in ((0.1, 0.2, "higher"), (-0.2, -0.1, "lower")):
        change_estimates(gap_ci_low=low, gap_ci_high=high)
        assert codes_at(rosa, MACHINE)[0] == side
    change_estimates(run="bm25", gap_ci_low=-0.1, gap_ci_high=0.1)
    assert codes_at(rosa, MACHINE)[0] == "mixed"
    assert "whole_topics_needed" not in codes_at(rosa, MACHINE)
    change_estimates(reason=NO_SUM)
    assert "whole_topics_needed" in codes_at(rosa, MACHINE)
    change_estimates(gap_ci_low=None, gap_ci_high=None, reason="one topic")
    view = view_of(rosa, MACHINE)
    assert view.answer.code == "gap_unknown"
    assert "one topic" in view.answer


def test_an_audit_says_what_would_be_misread_and_keeps_no_file(rosa, collection):
    bad = run_text("dense", n_topics=2).replace("t0 Q0", "t0 Q0 extra", 1)
    files = [sent("bad.run", bad), sent("notes.md", "hello\n"), sent("q.txt", qrels_text())]
    assert rosa.post(AUDIT, {"uploads": files}).status_code == 302
    shown = rosa.get(AUDIT).context["files"]
    assert {"files_refused", "files_read", "files_not_recognized"} <= set(codes_at(rosa, AUDIT))
    files = {one.file["file"]: one for one in shown}
    signs = {"bad.run": "needs-you", "notes.md": "later", "q.txt": "done"}
    assert {name: one.sign for name, one in files.items()} == signs
    assert [finding["lines"] for finding in files["bad.run"].refused] == ["1"]
    assert not collection.files.filter(kind="audited").exists()
    assert set(Result.objects.get().files.values_list("name", flat=True)) == set(signs)


POOLS = (
    "Input.target1,Input.top1,Input.top2,HITId,WorkerId,top1,top2\n"
    "boot,clog,pump,H1,W1,True,True\ngown,coat,sole,H2,W1,True,False\n"
)


def test_published_numbers_are_answered_claim_by_claim(rosa, collection):
    claims = "judged.csv:assessed=2\n\njudged.csv:mean_relevant=2.5\njudged.csv:prevalence=0.1"
    form = {"uploads": [sent("judged.csv", POOLS)], "claims": claims}
    assert rosa.post(AUDIT, form).status_code == 302
    kept = {one["name"]: one["explanation"] for one in view_of(rosa, AUDIT).rows["claims"]}
    assert kept["assessed"] == ""
    assert kept["mean_relevant"].startswith("1.50 + 1 = 2.50:")
    assert kept["prevalence"]
    assert "claims_differ" in codes_of(view_of(rosa, AUDIT).details)
    claims = rosa.get(AUDIT).context["claims"]
    assert claims.rows[0][0] == "judged.csv"
    assert claims.rows[0][2:4] == ("2", Number(2, 0))
    assert Result.objects.get().settings == {
        "claims": {"judged.csv": {"assessed": "2", "mean_relevant": "2.5", "prevalence": "0.1"}}
    }


def test_an_audit_of_nothing_of_an_empty_file_or_of_bad_claims_is_refused(rosa, collection):
    uploads = [sent("good.txt", qrels_text()), sent("empty.txt", "")]
    size = "judged.csv:size=2"
    for form, codes, named in (
        ({}, {"uploads": ["no_file"]}, ()),
        ({"uploads": uploads}, {"uploads": ["empty_file"]}, ("empty.txt",)),
        ({"claims": f"judged.csv:assessed=2\n{size}"}, {"claims": ["not_a_claim"]}, ("2", size)),
        ({"claims": "judged.csv:assessed=many"}, {"claims": ["not_a_claim"]}, ("1", "=many")),
        ({"claims": "other.csv:assessed=2"}, {"claims": ["unknown_file"]}, ("other.csv",)),
    ):
        if "claims" in form:
            form |= {"uploads": [sent("judged.csv", POOLS)]}
        answer = rosa.post(AUDIT, form)
        assert refused_fields(answer) == codes
        assert all(one in str(answer.context["form"].errors) for one in named)
    assert not collection.files.filter(kind="audited").exists()


def test_an_audit_reads_files_of_several_assessors_and_leaves_the_collections_own(rosa, collection):
    """Two of three documents that both judged have the same grade."""
    text = "".join(
        f"t1 {who} d{number} {int(number < most)}\n"
        for who, most in (("Ann", 1), ("Bob", 2))
        for number in range(3)
    )
    form = {"uploads": [sent("all.qrels", text)], "claims": "all.qrels:assessed=25"}
    rosa.post(AUDIT, form | {"stored": [file.pk for file in collection.files.all()]})
    assert collection.files.count() == 4
    assert Result.objects.get().facts["n_files"] == 5
    [file] = [one for one in rosa.get(AUDIT).context["files"] if one.file["file"] == "all.qrels"]
    assert (file.file["kind"], file.sign) == ("assessors", "done")
    assert any("0.500" in note["text"] for note in file.notes)
    # Claims are about pools.
    assert file.file["claims"] == []
    assert "claims_not_checked" in [note["name"] for note in file.notes]


def test_what_an_audit_counted_is_in_tables_of_words_and_numbers(rosa, collection):
    """Twelve pools of the same two pictures, which are its hubs."""
    rows = "".join(f"t{n},hub,other,h{n},{n < 6},{n < 3}\n" for n in range(12))
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    rosa.post(AUDIT, {"uploads": [sent("judged.csv", header + rows)]})
    [file] = list_files(Result.objects.get())
    tables = {table.name.rpartition("-")[0]: table for table in file.numbers}
    assert tables["hubs-largest"].rows == [("hub", Number(12, 0)), ("other", Number(12, 0))]
    counted = {(of, name): value for of, name, value in tables["numbers"].rows}
    assert counted[words_of("hubs"), words_of("share_of_slots")] == Number(1, 0)
    texts = [cell for cell in chain(*chain(*(table.rows for table in file.numbers)))
             if isinstance(cell, str)]  # fmt: skip
    assert not any("{" in text or "_" in text or len(text) > 60 for text in texts), texts


def test_rows_that_an_audit_could_not_read_are_not_counted_as_looked_at(rosa, collection):
    header = "Input.target1,Input.top1,Input.top2,HITId,top1,top2\n"
    rows = "a,b,b,h1,True,False\nc,d,e,h2,True,False\na,a,a,h3,yes,\n"
    rosa.post(AUDIT, {"uploads": [sent("judged.csv", header + rows)]})
    view = view_of(rosa, AUDIT)
    assert "rows_refused" in codes_of(view.details)
    [pools] = [one for one in view.details if one.code == "pools_audited"]
    assert re.findall(r"\d+", pools) == ["1", "2", "0"]


def test_compared_qrels_say_whose_judgments_they_were_made_of(rosa, researcher, collection):
    study = rating_study("plates", owner=researcher, n_items=1)
    second = add_file(collection, "second.txt", qrels_text(relevant=7))
    for _ in range(2):
        rosa.post(TRUST, form_of(collection))
    comparisons = Result.objects.filter(kind="comparison")
    assert comparisons.count() == 1
    # Described otherwise, they are compared again.
    describe_file(file=second, actor=researcher, assessor="Ann", rule="majority", round="2")
    for name, relevant, made_by in (("third.txt", 8, ""), ("machine.txt", 9, "machine")):
        file = add_file(collection, name, qrels_text(relevant=relevant))
        fields = {"made_by": made_by} if made_by else {"study": study, "round": "1", "rule": "any"}
        CollectionFile.objects.filter(pk=file.pk).update(**fields)
    rosa.post(TRUST, form_of(collection))
    rows = {one["name"]: one for one in comparisons.latest("pk").record["qrels"]}
    names = ("judgments", "assessor", "rule")
    whose = {name: tuple(one.get(each, "") for each in names) for name, one in rows.items()}
    assert whose["qrels.txt"] == ("", "", "")
    assert whose["second.txt"] == ("Ann, round 2", "Ann", "majority")
    assert whose["third.txt"] == ("plates, round 1", "", "any")
    assert whose["union"][:2] == ("", "")
    assert rows["machine.txt"]["kind"] == "machine"
    [judged] = [one for one in view_of(rosa, TRUST).details if one.code == "machine_judged"]
    assert "machine.txt" in judged


def test_rules_of_the_same_judgments_count_as_one_assessor(rosa, researcher, collection):
    study = ticked_study(owner=researcher, team=collection.team)
    collection.files.filter(name="qrels.txt").delete()
    for name, relevant, rule in (("one-any", 7, "any"), ("one-majority", 5, "majority")):
        file = add_file(collection, name, qrels_text(relevant=relevant))
        file.study, file.round, file.rule = study, "1", rule
        file.save()
    assert rosa.post(TRUST, form_of(collection)).status_code == 302
    assert Job.objects.get(kind="compare_collection_qrels").state == Job.State.DONE
    version = Result.objects.get(kind="comparison")
    assert version.record["assessors"] is None
    assert {one["name"] for one in version.record["qrels"]} == {"one-any", "one-majority"}
    assert any(note["text"].startswith("one-any, one-majority ") for note in version.notes)
    other = add_file(collection, "other", qrels_text(relevant=6))
    other.assessor = "Bob"
    other.save()
    rosa.post(TRUST, form_of(collection))
    latest = Result.objects.filter(kind="comparison").latest("number")
    assert latest.record["assessors"]["n_assessors"] == 2


def test_the_depth_of_a_pool_that_was_made_here_is_known(researcher, collection):
    runs = [collection.files.get(name="dense")]
    request_pool(collection=collection, files=runs, rules={"depth": 4, "seed": 7}, actor=researcher)
    version = Result.objects.get(kind="pool")
    study = ticked_study(owner=researcher, team=collection.team)
    PoolStudy.objects.create(version=version, study=study)
    qrels = collection.files.get(name="qrels.txt")
    assert find_pool_depth([qrels, *runs]) is None
    qrels.study = study
    assert find_pool_depth([qrels, *runs]) == 4


def test_of_a_pool_by_quotas_a_run_is_left_out_with_what_the_pool_took_of_it(
    rosa, researcher, collection
):
    """By the pool's record: what a run alone filled goes, what another came by in it stays."""
    files = collection.files.all()
    pooled = [files.get(name=name) for name in ("bm25", "dense")]
    rules = {"quotas": {"bm25": 3, "dense": 3}, "seed": 7}
    request_pool(collection=collection, files=pooled, rules=rules, actor=researcher)
    version = Result.objects.get(kind="pool")
    slots = list(PoolSlot.objects.filter(topic__version=version).select_related("topic"))
    lines = [f"{slot.topic.topic} 0 {slot.docno} {slot.slot % 2}" for slot in slots]
    qrels = add_file(collection, "judged.txt", "\n".join(lines) + "\n")
    qrels.study = ticked_study(owner=researcher, team=collection.team)
    qrels.save()
    PoolStudy.objects.create(version=version, study=qrels.study)
    late = files.get(name="rm3")
    form = form_of(collection, qrels=qrels.pk)
    rosa.post(REUSE, form)
    assert "rm3" in failed_message(rosa, REUSE)
    rosa.post(REUSE, form | {"outside": [late.pk]})
    [reuse] = Result.objects.filter(kind="reuse")
    passed = {
        (one.topic_id, one.docno, one.source)
        for one in PoolReplacement.objects.filter(topic__version=version, reason="pooled")
    }
    assert passed
    lost = {one["name"]: one["n_judged_lost"] for one in reuse.record["left_out"]}
    for name, other in (("bm25", "dense"), ("dense", "bm25")):
        own = [slot for slot in slots if slot.source == name]
        alone = [slot for slot in own if (slot.topic_id, slot.docno, other) not in passed]
        assert len(alone) < len(own)
        assert lost[name] == len(alone)
    codes = codes_at(rosa, REUSE)
    assert "provenance" in codes
    assert "pool_shallow" not in codes
    rosa.post(REUSE, form | {"outside": [late.pk], "pool_depth": "500"})
    rosa.post(REUSE, form | {"outside": [late.pk], "pool_depth": "20"})
    assert "pool_incomplete" in codes_at(rosa, REUSE)


def test_a_depth_that_was_assumed_is_said_and_confidence_is_kept(rosa, collection):
    qrels = collection.files.get(name="qrels.txt").pk
    assert rosa.post(REUSE, form_of(collection, qrels=qrels, confidence="0.9")).status_code == 302
    assert Result.objects.get().settings["confidence"] == 0.9
    assert "depth_assumed" in codes_at(rosa, REUSE)
    assert "|confidence:0.9|" in view_of(rosa, REUSE).signature


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
    of = {"first": "qrels.txt", "second": "second.txt", "measure": "nDCG@10"}
    [pair] = [one for one in Result.objects.get().record["pairs"] if one | of == one]
    changes = pair["significance"]
    decided = changes["kept"] + changes["lost"] + changes["reversed"]
    assert decided
    [said] = [one for one in view_of(rosa, TRUST).details if one.code == "pair"]
    assert f" {decided} " in said
    assert f" {changes['kept']} " in said


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


def test_two_grades_of_a_document_by_two_assessors_are_told_from_qrels(rosa, collection):
    files = [sent("jg.txt", grades_text()), sent("other.txt", qrels_text(relevant=7))]
    assert rosa.post(FILES, {"uploads": files}).status_code == 302
    kinds = dict(collection.files.values_list("name", "kind"))
    assert (kinds["jg.txt"], kinds["other.txt"]) == ("assessors", "qrels")
    file = collection.files.get(name="jg.txt")
    assert (file.n_assessors, file.n_topics, file.n_documents) == (3, 25, 30)
    assert (file.n_lines, file.is_usable) == (25 * 3 * 30, True)
    assert rosa.get(f"{FILES}{file.pk}/").status_code == 200


def test_grades_that_contradict_or_are_sent_as_qrels_are_refused_by_line(rosa, collection):
    rosa.post(FILES, {"uploads": [sent("twice.txt", "t0 ada d1 1\nt0 ben d1 0\nt0 ada d1 0\n")]})
    [(line, problem)] = collection.files.get(file_name="twice.txt").faults
    assert line == 3
    assert all(name in problem for name in ("d1", "t0", "ada"))
    rosa.post(FILES, {"uploads": [sent("jg.txt", grades_text())], "kind": "qrels"})
    lines = [line for line, _problem in collection.files.get(file_name="jg.txt").faults]
    assert lines[0] is None  # a hint
    assert all(lines[1:])


def test_assessors_grades_alone_become_qrels_by_a_rule(rosa, researcher, collection, tmp_path):
    """Two of three are the majority; of two the lower grade; what nobody judged is -1."""
    collection.files.qrels().delete()
    text = "t0 ada a 2\nt0 ben a 1\nt0 cem a 0\nt0 ada b 1\nt0 ben b 0\nt0 ada c -1\n"
    file = add_file(collection, "jg.txt", text)
    assert rosa.get("/collections/tracks/").context["step"]["url"] == FILES
    assert rosa.get("/collections/tracks/evaluation/").context["problem"].code == "only_assessors"
    assert f'action="{FILES}{file.pk}/qrels/"' in rosa.get(FILES).content.decode()
    refused = rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "median"}, follow=True)
    assert message_codes(refused) == ["no_qrels_made"]
    rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "majority"})
    rosa.post(f"{FILES}{file.pk}/qrels/", {"rule": "any"})
    by_any, by_majority = collection.files.qrels().order_by("name")
    assert (by_majority.name, by_majority.rule) == ("jg.txt, majority", "majority")
    assert by_majority.is_usable
    assert by_any.judgments == by_majority.judgments
    contents = {one.rule: content_of(one).decode() for one in (by_any, by_majority)}
    assert contents["majority"] == "t0 0 a 1\nt0 0 b 0\nt0 0 c -1\n"
    assert contents["any"] == "t0 0 a 2\nt0 0 b 1\nt0 0 c -1\n"
    step = rosa.get("/collections/tracks/").context["step"]
    assert step["url"] == "/collections/tracks/evaluation/"
    (tmp_path / "jg.txt").write_text(text)
    output = tmp_path / "merged"
    record = record_of("merge_assessors", tmp_path / "jg.txt", "--output", output)
    assert output.read_text() == contents["majority"]
    assert record["n_unjudged"] == 1


@pytest.mark.slow
def test_a_comparison_of_assessors_has_what_the_command_prints(rosa, collection, tmp_path, file):
    text = grades_text()
    assessors = add_file(collection, "jg.txt", text).pk
    assert rosa.post(TRUST, form_of(collection, assessors=assessors)).status_code == 302
    said = record_of(
        *("compare_qrels", "--assessors", file("jg.txt", text), *run_options(tmp_path)),
        *("--qrels", f"qrels.txt={file('qrels.txt', qrels_text())}"),
        *("--measure", "nDCG@10", "--primary", "nDCG@10"),
    )
    result = Result.objects.get()
    for part in ("assessors", "pairs", "rankings", "labels", "random_assessor", "crossed"):
        assert result.record[part] == said[part], part
    kinds = [(one["name"], one["kind"]) for one in result.record["qrels"]]
    assert kinds == [(each["name"], each["kind"]) for each in said["qrels"]]
    assert [note["text"] for note in result.notes] == said["notes"]
    view = rosa.get(TRUST).context["view"]
    assert "any_two_assessors" in answer_codes(view)
    assert "any-two-assessors" in view.tables


def test_assessors_who_judged_some_topics_each_are_compared_by_what_is_derived(rosa, collection):
    """Nobody ranks the runs alone, so the page speaks of union, intersection and majority."""
    lines = grades_text().splitlines(keepends=True)
    left_out = {("ada", "t0"), ("ben", "t1"), ("cem", "t2")}
    text = "".join(line for line in lines if tuple(line.split()[1::-1]) not in left_out)
    file = add_file(collection, "jg.txt", text)
    rosa.post(TRUST, form_of(collection, qrels=[], assessors=file.pk))
    record = Result.objects.get().record
    assert {one["kind"] for one in record["qrels"]} == {"derived"}
    assert ("union", "intersection") in {(one["first"], one["second"]) for one in record["pairs"]}
    assert "pair" in answer_codes(rosa.get(TRUST).context["view"])
