import csv
import re
from io import StringIO

import pytest

from annotation.result_kinds.agreement import list_alphas
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT
from results.computing import request_result
from results.models import Result, pack_record
from retrieval import collections, models, stored_files
from retrieval.result_kinds import audit, evaluation, pools, report, reuse
from retrieval.result_kinds.machine import MachineKind
from retrieval.result_kinds.pools import request_pool
from tests.annotation.studies import add_candidates, alternatives_study, rate, rating_study, tick
from tests.codes import codes_on
from tests.console.addresses import address
from tests.console.pages import refused_fields, words_of
from tests.retrieval.collections import add_file, content_of
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


RULES = {"measures": ["nDCG@10"], "primary": ["nDCG@10"]}
DOCUMENTS = ("a", "b", "c", "d")


def request(collection, kind=evaluation.EvaluationKind, *, depth=None, **chosen):
    rules = RULES | ({"pool_depth": depth} if depth else {})
    request_result(
        kind=kind(), subject=collection, chosen=chosen, settings=rules, actor=collection.created_by
    )


@pytest.fixture
def collection(empty_collection):
    return empty_collection


def run_of(tag, n_topics=12, best="a"):
    order = [best, *(name for name in DOCUMENTS if name != best)]
    return "".join(
        f"t{topic:02} Q0 {name} {rank} {10 - rank - topic / 100:.3f} {tag}\n"
        for topic in range(n_topics)
        for rank, name in enumerate(order, 1)
    )


@pytest.fixture
def study(researcher, collection):
    """Twelve topics: Ann ticked a everywhere; Bob judged three again, and ticked b in one."""
    study = alternatives_study("ticks", owner=researcher, team=collection.team)
    study.items.all().delete()
    for topic in range(12):
        item = study.items.create(key=f"t{topic:02}", position=topic, context="Target")
        add_candidates(item, DOCUMENTS)
        submission = tick(study, "Ann", item.key, ["a"])
        submission.justification = "The same colour and shape."
        submission.save()
    for topic in range(3):
        ticked = ["b"] if topic == 2 else ["a"]
        tick(study, "Bob", f"t{topic:02}", ticked, round=2)
    collections.link_studies(collection=collection, studies=[study], actor=researcher)
    return study


def page(client, name, **query):
    answer = client.get(address(f"collection-{name}"), query)
    assert answer.status_code == 200
    return answer.context


def study_sentences(client):
    [study] = page(client, "judgments")["studies"]
    return {one.code: one for one in study.agreement}


def write_report(client, collection):
    client.post(address("collection-report"))
    sections = report.Conclusions(collection).sections()
    stored = {one.name: one.sentences for one in page(client, "report")["sections"]}
    assert stored == {one.name: [str(text) for text in one.sentences] for one in sections}
    codes = {one.name: [getattr(text, "code", "") for text in one.sentences] for one in sections}
    return stored, codes


def make_qrels(client, study, rule="majority", round=1):
    where = address("collection-study-qrels", study_id=study.pk)
    return client.post(where, {"round": round, "rule": rule})


def two_runs(collection):
    """Runs of which the first ranks what was ticked, and the second what was not."""
    return [
        add_file(collection, f"{tag}.run", run_of(tag, best=best))
        for tag, best in (("good", "a"), ("bad", "b"))
    ]


def test_targets_are_drawn_by_a_predictor_and_downloaded_with_their_probability(rosa, collection):
    run = add_file(collection, "bm25.run", run_of("bm25"))
    form = {"n": 6, "by": "max", "source": run.pk, "strata": 3, "allocation": "equal", "seed": 1}
    for change, codes in (
        ({"by": "column"}, {"file": ["file_missing"]}),
        ({"source": ""}, {"source": ["no_scores"]}),
        ({"n": 0}, {"n": ["min_value"]}),
        ({"n": 13}, {"n": ["too_few_targets"]}),
        ({"n": 2}, {"strata": ["too_many_strata"]}),
    ):
        assert refused_fields(rosa.post(address("collection-targets"), form | change)) == codes
    assert not Job.objects.filter(kind="sample_targets").exists()
    rosa.post(address("collection-targets"), form)
    assert Job.objects.get(kind="sample_targets").state == "done"
    assert models.SampledTarget.objects.count() == 6
    assert Result.objects.get(kind="targets").settings["column"] == "max of bm25"
    assert page(rosa, "targets")["answer"]
    answer = rosa.get(address("collection-targets-file"))
    rows = list(csv.DictReader(StringIO(b"".join(answer).decode())))
    assert [float(row["probability"]) for row in rows] == [0.5] * 6
    assert {row["stratum"] for row in rows} == {"1", "2", "3"}


def graded_study(collection, names, of_ann, of_bob, *, round=1):
    of_team = {"owner": collection.created_by, "team": collection.team}
    study = rating_study("grades", n_items=len(of_ann), **of_team)
    scale = {"scale_min": 0, "scale_max": len(names) - 1, "categories": names}
    study.questions.update(kind="category", level="ordinal", **scale)
    for n, (first, second) in enumerate(zip(of_ann, of_bob, strict=True)):
        rate(study, "Ann", f"d{n}", {"alpha": first})
        rate(study, "Bob", f"d{n}", {"alpha": second}, round=round)
    collections.link_studies(collection=collection, studies=[study], actor=collection.created_by)
    find_study_kind(AGREEMENT).compute_now(study)


def test_rounds_are_counted_and_their_kappa_is_given_with_its_pairs(rosa, study):
    where = address("collection-judgments")
    before = rosa.get(where)
    [row] = before.context["studies"]
    assert (row.rounds[0].n_items, row.n_items) == (12, 12)
    assert (row.rounds[1].n_items, row.rounds[1].n_annotators) == (3, 1)
    assert "agreement_outdated" in codes_on(before.content.decode())
    find_study_kind(AGREEMENT).compute_now(study)
    after = rosa.get(where)
    # a and b of twelve pairs: each ticked 3 of 12, together in 2
    kappa = study_sentences(rosa)["cohen_kappa"]
    assert "0.56" in kappa
    assert " 12 " in kappa
    assert "agreement_outdated" not in codes_on(after.content.decode())


def test_grades_have_a_weighted_kappa_and_who_could_not_judge_is_counted_apart(rosa, collection):
    names = ["Not relevant", "Slightly relevant", "Relevant", "Highly relevant", "I can't judge"]
    graded_study(collection, names, [0, 1, 2, 3, 3, 4], [0, 2, 2, 3, 2, 1], round=2)
    said = study_sentences(rosa)
    # of 0 0, 1 2, 2 2, 3 3, 3 2 in four grades: 1 - (2 / 15) / (30 / 75)
    assert "0.67" in said["cohen_kappa_linear"]
    assert " 5 " in said["cohen_kappa_linear"]
    assert "without_judgment" in said
    assert "cohen_kappa" not in said
    [row] = page(rosa, "judgments")["studies"]
    assert row.n_without_judgment == 1
    for query, n in (("", 1), ("?round=2", 0)):
        view = rosa.get(f"/studies/grades/agreement/{query}").context["view"]
        assert view.displayed.n_cannot_judge == n


def test_annotators_of_one_round_agree_by_alpha(rosa, collection):
    graded_study(collection, ["no", "so", "yes"], [0, 1, 2, 2], [0, 1, 2, 1])
    said = study_sentences(rosa)["krippendorff_alpha"]
    [alpha] = list_alphas(Result.objects.get())
    assert f"{alpha.value:.2f}" in said
    assert " 8 " in said


def test_qrels_of_a_round_become_a_file_of_the_collection(rosa, collection, study):
    for round in (1, 2):
        make_qrels(rosa, study, round=round)
    first, second = models.CollectionFile.objects.qrels().order_by("pk")
    assert (first.n_topics, first.n_relevant, first.round, first.study) == (12, 12, "1", study)
    assert (second.n_topics, second.n_lines, second.n_relevant) == (3, 12, 3)
    assert content_of(second).decode().splitlines()[8:10] == ["t02 0 a 0", "t02 0 b 1"]
    assert list(page(rosa, "judgments")["studies"][0].qrels) == [first, second]


def test_each_annotators_grades_become_a_file_for_the_random_assessor(rosa, collection, study):
    assert "own" in dict(page(rosa, "judgments")["rules"])
    make_qrels(rosa, study, "own")
    file = models.CollectionFile.objects.get()
    assert (file.kind, file.study, file.rule, file.n_faults) == ("assessors", study, "", 0)
    lines = content_of(file).decode().splitlines()
    assert {line.split()[1] for line in lines} == {"Ann", "Bob.2"}
    assert file.n_lines == 60


def test_a_report_says_what_may_be_concluded_and_what_may_not(rosa, collection, study):
    find_study_kind(AGREEMENT).compute_now(study)
    make_qrels(rosa, study)
    request(collection, qrels=list(collection.files.qrels()), runs=two_runs(collection))
    texts, codes = write_report(rosa, collection)
    assert [int(n) for n in re.findall(r"\b\d+\b", texts["judged"][-1])][-3:] == [12, 48, 12]
    assert "0.56" in texts["agreement"][codes["agreement"].index("cohen_kappa")]
    assert any("good" in text and "1.000" in text for text in texts["systems"])
    assert {"not_left_out", "few_topics"} <= set(codes["limits"])
    file = rosa.get(address("collection-report-file"))
    content = words_of(file.content.decode())
    sections = Result.objects.get(kind="report").record["sections"]
    sentences = [text for section in sections for text in section["sentences"]]
    assert all(" ".join(one.split()) in content for one in sentences)


@pytest.mark.slow
def test_a_report_says_of_which_study_qrels_and_pool_each_statement_is(
    rosa, researcher, collection, study
):
    """The newest evaluation is of the study's qrels; a newer pool and a second study are not."""
    find_study_kind(AGREEMENT).compute_now(study)
    other_study = rating_study("grades", n_items=2, owner=researcher, team=collection.team)
    for who in ("Ann", "Bob", "Cleo"):
        for item in other_study.items.all():
            rate(other_study, who, item.key, {"alpha": 1})
    collections.link_studies(collection=collection, studies=[study, other_study], actor=researcher)
    make_qrels(rosa, study)
    of_study = collection.files.qrels().get()
    other, machine = (
        add_file(collection, name, "".join(f"t{n:02} 0 {best} 1\n" for n in range(12)))
        for name, best in (("other.txt", "a"), ("machine.txt", "b"))
    )
    stored_files.describe_file(file=machine, actor=researcher, made_by="machine")
    runs = two_runs(collection)
    common = {"collection": collection, "actor": researcher}
    for qrels in (other, of_study):
        request(collection, qrels=[qrels], runs=runs)
    request(collection, reuse.ReuseKind, depth=2, qrels=[other], runs=runs)
    request(collection, MachineKind, qrels=[of_study], machine=[machine], runs=runs)
    audit.request_audit(files=[of_study, *runs], **common)
    for seed in (1, 2):
        request_pool(files=runs, rules={"quotas": {"good": 3, "bad": 3}, "seed": seed}, **common)
    pool = Result.objects.get(kind="pool", number=1)
    models.PoolStudy.objects.create(version=pool, study=study, allowed="quota,hub")
    texts, codes = write_report(rosa, collection)
    title, qrels = study.title, of_study.name
    for section, code, named in (
        ("answer", "best", ("2", qrels, "good", "nDCG@10")),
        ("answer", "cohen_kappa", (title, "0.56")),
        ("pool", "", (title, "12")),
        ("pool", "pool_fault", ("24",)),
        ("pool", "allowed_faults", ("quota",)),
        ("machine", None, ("machine.txt", qrels)),
        ("outside", None, ("other.txt",)),
        ("audit", "no_defect", ("3",)),
        ("limits", "one_assessor", (qrels,)),
        ("limits", "left_out_otherwise", (qrels,)),
    ):
        at = 0 if code is None else codes[section].index(code)
        assert all(one in texts[section][at] for one in named), (section, code)
    made = zip(texts["made"], codes["made"], strict=True)
    others = [text for text, code in made if code == "left_out"]
    assert [re.findall(r"\d+", text) for text in others] == [["2"], ["1"]]


def test_a_report_names_runs_that_made_no_pool(rosa, researcher, collection, study):
    qrels = add_file(collection, "q.txt", "".join(f"t{n:02} 0 a 1\n" for n in range(12)))
    good, bad = two_runs(collection)
    common = {"collection": collection, "actor": researcher}
    request(collection, qrels=[qrels], runs=[good, bad])
    request_pool(files=[good], rules={"depth": 2, "seed": 7}, **common)
    texts, codes = write_report(rosa, collection)
    assert "bad" in texts["limits"][codes["limits"].index("not_pooled")]
    request_pool(files=[good, bad], rules={"depth": 2, "seed": 7}, **common)
    assert "not_pooled" not in write_report(rosa, collection)[1]["limits"]


@pytest.mark.slow
def test_a_report_says_first_when_labels_are_no_better_than_chance(rosa, collection, study):
    for topic in range(3, 12):
        tick(study, "Bob", f"t{topic:02}", ["a"], round=2)
    find_study_kind(AGREEMENT).compute_now(study)
    make_qrels(rosa, study)
    request(collection, qrels=list(collection.files.qrels()), runs=two_runs(collection))
    codes = write_report(rosa, collection)[1]
    assert "chance" not in codes["answer"] + codes["limits"]
    agreement = Result.objects.get(kind="agreement")
    rows = [
        row | {"value": 0.1, "ci_low": -0.1, "ci_high": 0.3}
        for row in agreement.record["between_rounds"]
        if (row["name"], row["by"]) == ("cohen_kappa", "another annotator")
    ]
    agreement.packed_record = pack_record(agreement.record | {"between_rounds": rows})
    agreement.save()
    add_file(collection, "other.txt", "t00 0 a 1\n")
    texts, codes = write_report(rosa, collection)
    for section in ("answer", "limits"):
        said = texts[section][codes[section].index("chance")]
        assert study.title in said
        assert "0.10 [−0.10, 0.30]" in said


def test_unequal_probabilities_of_targets_are_said_beside_means_and_in_the_report(
    rosa, researcher, collection, study
):
    """Strata of six of which three and two are drawn, and the pool of those targets."""
    good, bad = two_runs(collection)
    common = {"collection": collection, "actor": researcher}
    values = [(f"t{n:02}", "", float(n)) for n in range(12)]
    drawing = {"n": 5, "strata": 2, "allocation": "equal", "seed": 7, "column": "hard"}
    pools.request_sample(files=[], rules=drawing | {"values": values}, **common)
    sample = Result.objects.get(kind="targets")
    request_pool(files=[good, bad], rules={"depth": 2, "seed": 7, "sample": sample.pk}, **common)
    models.PoolStudy.objects.create(version=Result.objects.get(kind="pool"), study=study)
    make_qrels(rosa, study)
    request(collection, qrels=list(collection.files.qrels()), runs=[good, bad])
    unweighted = page(rosa, "evaluation")["view"].unweighted
    assert unweighted.code == "unweighted"
    assert "0.33" in unweighted
    assert "0.50" in unweighted
    codes = write_report(rosa, collection)[1]
    assert "unequal_draw" in codes["pool"]
    assert "unweighted" in codes["systems"]
    assert "unweighted" in codes["limits"]


def test_a_report_is_written_once_for_the_same_results(rosa, collection, study):
    assert write_report(rosa, collection)[1]["answer"] == ["nothing_evaluated"]
    write_report(rosa, collection)
    assert Result.objects.filter(kind="report").count() == 1
    make_qrels(rosa, study, "any")
    write_report(rosa, collection)
    assert Result.objects.filter(kind="report").count() == 2
