"""Targets, judgments and the report of a collection, on their pages."""

import csv
from io import StringIO

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from accounts.teams import create_team
from annotation.models import AgreementCoefficient, RoundCoefficient, Submission
from console.results import AGREEMENT, compute
from retrieval.collection_files import describe_file
from retrieval.collections import create_collection, link_studies
from retrieval.models import (
    CollectionFile,
    CollectionVersion,
    PoolStudy,
    ReportSentence,
    SampledTarget,
)
from retrieval.stored_audits import request_audit
from retrieval.stored_evaluations import request_evaluation
from retrieval.stored_machines import request_machine
from retrieval.stored_pools import request_pool
from retrieval.stored_reuse import request_reuse
from retrieval.stored_targets import request_sample
from tests.annotation.studies import (
    add_candidates,
    alternatives_study,
    rate,
    rating_study,
    tick,
)
from tests.console.pages import words_of
from tests.retrieval.collections import add_file
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]
DOCUMENTS = ("a", "b", "c", "d")


@pytest.fixture
def team(researcher):
    return create_team(name="Lab", owner=researcher)


@pytest.fixture
def collection(researcher, team):
    return create_collection(name="Tracks", team=team, actor=researcher)


def run_of(tag, n_topics=12, best="a"):
    order = [best, *(name for name in DOCUMENTS if name != best)]
    return "".join(
        f"t{topic:02} Q0 {name} {rank} {10 - rank - topic / 100:.3f} {tag}\n"
        for topic in range(n_topics)
        for rank, name in enumerate(order, 1)
    )


@pytest.fixture
def study(researcher, team, collection):
    """Twelve topics: Ann ticked a everywhere; Bob judged three again, and ticked b in one."""
    study = alternatives_study("ticks", owner=researcher, team=team)
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
    link_studies(collection=collection, studies=[study], actor=researcher)
    return study


def page(client, name, status=200, **query):
    answer = client.get(reverse(f"console:collection-{name}", args=["tracks"]), query)
    assert answer.status_code == status
    return words_of(answer.content.decode())


def test_targets_are_drawn_by_a_predictor_and_downloaded_with_their_probability(rosa, collection):
    run = add_file(collection, "bm25.run", run_of("bm25"))
    form = {"n": 6, "by": "max", "source": run.pk, "strata": 3, "allocation": "equal", "seed": 1}
    rosa.post(reverse("console:collection-targets", args=["tracks"]), form)
    assert Job.objects.get(kind="sample_targets").state == "done"
    assert SampledTarget.objects.count() == 6
    assert "Sample 1: 6 targets, by max of bm25." in page(rosa, "targets")
    address = reverse("console:collection-targets-file", args=["tracks", 1])
    answer = rosa.get(address)
    rows = list(csv.DictReader(StringIO(b"".join(answer).decode())))
    assert [float(row["probability"]) for row in rows] == [0.5] * 6
    assert {row["stratum"] for row in rows} == {"1", "2", "3"}


def test_targets_are_drawn_by_any_column_of_a_file(rosa, collection):
    table = "target,clicks\n" + "".join(f"p{n},{n}\n" for n in range(10))
    file = SimpleUploadedFile("clicks.csv", table.encode())
    form = {"n": 4, "by": "column", "column": "clicks", "file": file, "strata": 2}
    form |= {"allocation": "proportional", "seed": 3}
    rosa.post(reverse("console:collection-targets", args=["tracks"]), form)
    drawn = SampledTarget.objects.values_list("topic", "value", "stratum", "inclusion")
    assert {(row[2], row[3]) for row in drawn} == {("1", 0.4), ("2", 0.4)}
    assert all(topic == f"p{value:.0f}" for topic, value, _, _ in drawn)
    assert CollectionVersion.objects.get().rules["column"] == "clicks"


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"by": "column"}, "Choose a file that has the column."),
        ({"source": ""}, "A predictor looks at the scores of a run or of vectors."),
        ({"n": 0}, "greater than or equal to 1"),
        ({"n": 13}, "bm25 has 12 targets."),
        ({"n": 2}, "There are more strata than targets to draw."),
    ],
)
def test_a_draw_that_cannot_be_made_is_refused_at_its_field(rosa, collection, change, refusal):
    run = add_file(collection, "bm25.run", run_of("bm25"))
    form = {"n": 6, "by": "max", "source": run.pk, "strata": 3, "allocation": "equal", "seed": 1}
    answer = rosa.post(reverse("console:collection-targets", args=["tracks"]), form | change)
    assert answer.status_code == 422
    assert refusal in words_of(answer.content.decode())
    assert not Job.objects.filter(kind="sample_targets").exists()


def test_the_choices_of_a_draw_that_failed_are_offered_again(rosa, collection):
    equal = "".join(f"t{topic:02} Q0 a 1 1.0 equal\n" for topic in range(12))
    run = add_file(collection, "equal.run", equal)
    form = {"n": 6, "by": "max", "source": run.pk, "strata": 3, "allocation": "equal", "seed": 11}
    rosa.post(reverse("console:collection-targets", args=["tracks"]), form)
    assert Job.objects.get(kind="sample_targets").state == "failed"
    offered = rosa.get(reverse("console:collection-targets", args=["tracks"])).context["form"]
    assert {name: str(offered[name].value()) for name in form} == {
        name: str(value) for name, value in form.items()
    }


def test_rounds_are_counted_and_their_kappa_is_given_with_its_pairs(rosa, study):
    before = page(rosa, "judgments")
    assert "12 of 12 targets are judged." in before
    assert "Round 2: 3 targets, judged by 1 annotator." in before
    assert "Compute agreement" in before
    compute(study, AGREEMENT)
    after = page(rosa, "judgments")
    # a and b of twelve pairs: each ticked 3 of 12, together in 2
    assert "Cohen's kappa of rounds 1 and 2: 0.56" in after
    assert "of 12 pairs of judgments" in after
    assert "Compute agreement" not in after


def test_reasons_are_led_to_where_one_was_written_and_what_has_no_share_has_no_interval(
    rosa, study
):
    reasons = reverse("console:reasons", args=[study.slug])
    assert f'href="{reasons}"' in rosa.get("/collections/tracks/judgments/").content.decode()
    listed = words_of(rosa.get(reasons).content.decode())
    assert "Of 0 others" in listed
    assert "[–" not in listed
    assert "– where there is no reason of that kind" in listed
    Submission.objects.update(justification="")
    page = rosa.get("/collections/tracks/judgments/").content.decode()
    assert reasons not in page


def test_grades_have_a_weighted_kappa_and_who_could_not_judge_is_counted_apart(
    rosa, researcher, team, collection
):
    study = rating_study("grades", n_items=6, owner=researcher, team=team)
    names = ["Not relevant", "Slightly relevant", "Relevant", "Highly relevant", "I can't judge"]
    study.questions.update(
        kind="category", level="ordinal", scale_min=0, scale_max=4, categories=names
    )
    for n, (first, second) in enumerate(zip([0, 1, 2, 3, 3, 4], [0, 2, 2, 3, 2, 1], strict=True)):
        rate(study, "Ann", f"d{n}", {"alpha": first})
        rate(study, "Bob", f"d{n}", {"alpha": second}, round=2)
    link_studies(collection=collection, studies=[study], actor=researcher)
    compute(study, AGREEMENT)
    said = page(rosa, "judgments")
    # of 0 0, 1 2, 2 2, 3 3, 3 2 in four grades: 1 - (2 / 15) / (30 / 75)
    assert "linear weights" in said
    assert "of rounds 1 and 2: 0.67" in said
    assert "of 5 pairs of judgments" in said
    assert "1 answer says that its candidate cannot be judged" in said
    assert "Cohen's kappa of rounds" not in said
    agreement = words_of(rosa.get("/studies/grades/agreement/").content.decode())
    assert "1 answer says that nothing can be judged: it is in no coefficient" in agreement
    agreement = words_of(rosa.get("/studies/grades/agreement/?round=2").content.decode())
    assert "nothing can be judged" not in agreement


def test_annotators_of_one_round_agree_by_alpha(rosa, researcher, team, collection):
    study = rating_study("grades", n_items=4, owner=researcher, team=team)
    study.questions.update(
        kind="category", level="ordinal", scale_min=0, scale_max=2, categories=["no", "so", "yes"]
    )
    for n, (first, second) in enumerate(zip([0, 1, 2, 2], [0, 1, 2, 1], strict=True)):
        rate(study, "Ann", f"d{n}", {"alpha": first})
        rate(study, "Bob", f"d{n}", {"alpha": second})
    link_studies(collection=collection, studies=[study], actor=researcher)
    assert "Compute agreement" in page(rosa, "judgments")
    compute(study, AGREEMENT)
    said = page(rosa, "judgments")
    alpha = AgreementCoefficient.objects.get(name="krippendorff_alpha", by="", with_flagged=True)
    assert f"alpha between the annotators of round 1: {alpha.value:.2f}" in said
    assert "of 8 judgments that have another beside them" in said
    assert "Are these targets enough?" in said


def test_qrels_of_a_round_become_a_file_of_the_collection(rosa, collection, study):
    address = reverse("console:collection-study-qrels", args=["tracks", study.pk])
    for round_ in (1, 2):
        rosa.post(address, {"round": round_, "rule": "majority"})
    first, second = CollectionFile.objects.qrels().order_by("pk")
    assert (first.n_topics, first.n_relevant, first.round, first.study) == (12, 12, "1", study)
    assert (second.n_topics, second.n_lines, second.n_relevant) == (3, 12, 3)
    content = b"".join(bytes(part.content) for part in second.parts.all()).decode()
    assert content.splitlines()[8:10] == ["t02 0 a 0", "t02 0 b 1"]
    assert "Ticks, round 1, majority" in page(rosa, "judgments").replace("ticks", "Ticks")


def test_each_annotators_grades_become_a_file_for_the_random_assessor(rosa, collection, study):
    address = reverse("console:collection-study-qrels", args=["tracks", study.pk])
    assert "each annotator's own, of every round" in page(rosa, "judgments")
    rosa.post(address, {"round": 1, "rule": "own"})
    file = CollectionFile.objects.get()
    assert (file.kind, file.study, file.rule, file.n_faults) == ("assessors", study, "", 0)
    content = b"".join(bytes(part.content) for part in file.parts.all()).decode()
    assert {line.split()[1] for line in content.splitlines()} == {"Ann", "Bob.2"}
    assert "each annotator: 60 grades." in page(rosa, "judgments")


def test_a_report_says_what_may_be_concluded_and_what_may_not(rosa, researcher, collection, study):
    compute(study, AGREEMENT)
    address = reverse("console:collection-study-qrels", args=["tracks", study.pk])
    rosa.post(address, {"round": 1, "rule": "majority"})
    good, bad = (
        add_file(collection, f"{tag}.run", run_of(tag, best=best))
        for tag, best in (("good", "a"), ("bad", "b"))
    )
    request_evaluation(
        collection=collection,
        qrels=collection.files.qrels().get(),
        runs=[good, bad],
        rules={"measures": ["nDCG@10"], "primary": ["nDCG@10"]},
        actor=researcher,
    )
    assert "Write the report" in page(rosa, "report")
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    text = page(rosa, "report")
    assert "12 topics, 48 topic–document pairs judged, of which 12 are relevant" in text
    assert "Cohen's kappa of rounds 1 and 2: 0.56" in text
    assert "good: nDCG@10 1.00" in text.replace("1.000", "1.00")
    assert "no system was left out of the pool" in text
    assert "below 20 topics intervals are a rough guide" in text
    file = rosa.get(reverse("console:collection-report-file", args=["tracks", 1]))
    content = words_of(file.content.decode())
    sentences = ReportSentence.objects.values_list("text", flat=True)
    assert all(" ".join(one.split()) in content for one in sentences)


def test_a_report_says_of_which_study_qrels_and_pool_each_statement_is(
    rosa, researcher, team, collection, study
):
    """The newest evaluation is of the study's qrels; a newer pool and a second study are not."""
    compute(study, AGREEMENT)
    other_study = rating_study("grades", n_items=2, owner=researcher, team=team)
    for who in ("Ann", "Bob", "Cleo"):
        for item in other_study.items.all():
            rate(other_study, who, item.key, {"alpha": 1})
    link_studies(collection=collection, studies=[study, other_study], actor=researcher)
    rosa.post(
        reverse("console:collection-study-qrels", args=["tracks", study.pk]),
        {"round": 1, "rule": "majority"},
    )
    of_study = collection.files.qrels().get()
    other, machine = (
        add_file(collection, name, "".join(f"t{n:02} 0 {best} 1\n" for n in range(12)))
        for name, best in (("other.txt", "a"), ("machine.txt", "b"))
    )
    describe_file(file=machine, actor=researcher, made_by="machine")
    runs = [
        add_file(collection, f"{tag}.run", run_of(tag, best=best))
        for tag, best in (("good", "a"), ("bad", "b"))
    ]
    rules = {"measures": ["nDCG@10"], "primary": ["nDCG@10"]}
    common = {"collection": collection, "actor": researcher}
    of_runs = common | {"runs": runs, "rules": rules}
    request_evaluation(qrels=other, **of_runs)
    request_evaluation(qrels=of_study, **of_runs)
    request_reuse(qrels=other, **of_runs | {"rules": rules | {"pool_depth": 2}})
    request_machine(qrels=of_study, machine=machine, **of_runs)
    request_audit(files=[of_study, *runs], **common)
    for seed in (1, 2):
        request_pool(files=runs, rules={"quotas": {"good": 3, "bad": 3}, "seed": seed}, **common)
    pool = CollectionVersion.objects.get(kind="pool", number=1)
    PoolStudy.objects.create(version=pool, study=study, allowed="quota,hub")
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    text = page(rosa, "report")
    title, qrels = study.title, of_study.name
    for said in (
        f"Evaluation 2, by qrels “{qrels}”: good is best by nDCG@10.",
        f"Study “{title}”: Cohen's kappa of rounds 1 and 2: 0.56",
        f"Pool 1, of the study “{title}”: 12 targets",
        "Fault: a source's quota is not met (24).",
        "Its study was made although lint found: quota.",
        f"Machine's labels 1, of “machine.txt”, by qrels “{qrels}”: ",
        "Estimate of reuse 1, by qrels “other.txt”, not by those that were evaluated: ",
        "Audit 1, of 3 files: No defect was found.",
        f"most topics of “{qrels}” were judged by one assessor",
        f"What a system outside the pool may expect under “{qrels}”",
        "Not in this report: Pool 2.",
        "Not in this report: Evaluation 1.",
    ):
        assert said in text, said


def test_a_report_names_runs_that_made_no_pool(rosa, researcher, collection, study):
    qrels = add_file(collection, "q.txt", "".join(f"t{n:02} 0 a 1\n" for n in range(12)))
    good, bad = (
        add_file(collection, f"{tag}.run", run_of(tag, best=best))
        for tag, best in (("good", "a"), ("bad", "b"))
    )
    rules = {"measures": ["nDCG@10"], "primary": ["nDCG@10"]}
    common = {"collection": collection, "actor": researcher}
    request_evaluation(qrels=qrels, runs=[good, bad], rules=rules, **common)
    request_pool(files=[good], rules={"depth": 2, "seed": 7}, **common)
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    text = page(rosa, "report")
    assert "The place of bad among the others: it was not pooled" in text
    request_pool(files=[good, bad], rules={"depth": 2, "seed": 7}, **common)
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    assert "among the others" not in page(rosa, "report")


def test_a_run_whose_documents_are_all_judged_needs_no_pool(rosa, researcher, collection, study):
    lines = [f"t{n:02} 0 {name} {int(name == 'a')}" for n in range(12) for name in DOCUMENTS]
    qrels = add_file(collection, "machine.txt", "\n".join(lines) + "\n")
    good, late = (add_file(collection, f"{tag}.run", run_of(tag)) for tag in ("good", "late"))
    rules = {"measures": ["nDCG@10"], "primary": ["nDCG@10"]}
    common = {"collection": collection, "actor": researcher}
    request_evaluation(qrels=qrels, runs=[good, late], rules=rules, **common)
    request_pool(files=[good], rules={"depth": 2, "seed": 7}, **common)
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    assert "among the others" not in page(rosa, "report")


def test_a_report_says_first_when_labels_are_no_better_than_chance(
    rosa, researcher, collection, study
):
    for topic in range(3, 12):
        tick(study, "Bob", f"t{topic:02}", ["a"], round=2)
    compute(study, AGREEMENT)
    row = RoundCoefficient.objects.filter(name="cohen_kappa", by="another annotator").get()
    rosa.post(
        reverse("console:collection-study-qrels", args=["tracks", study.pk]),
        {"round": 1, "rule": "majority"},
    )
    runs = [add_file(collection, "good.run", run_of("good"))]
    request_evaluation(
        collection=collection,
        qrels=collection.files.qrels().get(),
        runs=[*runs, add_file(collection, "bad.run", run_of("bad", best="b"))],
        rules={"measures": ["nDCG@10"], "primary": ["nDCG@10"]},
        actor=researcher,
    )
    write = reverse("console:collection-report", args=["tracks"])
    rosa.post(write)
    assert "better than chance" not in page(rosa, "report")
    RoundCoefficient.objects.filter(pk=row.pk).update(value=0.1, ci_low=-0.1, ci_high=0.3)
    add_file(collection, "other.txt", "t00 0 a 1\n")
    rosa.post(write)
    text = page(rosa, "report")
    said = "The judgments are not shown to agree better than chance: Cohen's kappa of rounds 1"
    assert f"Study “{study.title}”: {said} and 2, 0.10 [−0.10, 0.30]." in text
    assert f"Whether labels of “{study.title}” are more than chance. {said}" in text


def test_unequal_probabilities_of_targets_are_said_beside_means_and_in_the_report(
    rosa, researcher, collection, study
):
    """Strata of six of which three and two are drawn, and the pool of those targets."""
    good, bad = (
        add_file(collection, f"{tag}.run", run_of(tag, best=best))
        for tag, best in (("good", "a"), ("bad", "b"))
    )
    common = {"collection": collection, "actor": researcher}
    values = [(f"t{n:02}", "", float(n)) for n in range(12)]
    drawing = {"n": 5, "strata": 2, "allocation": "equal", "seed": 7, "column": "hard"}
    request_sample(files=[], rules=drawing | {"values": values}, **common)
    sample = CollectionVersion.objects.get(kind="targets")
    request_pool(files=[good, bad], rules={"depth": 2, "seed": 7, "sample": sample.pk}, **common)
    pool = CollectionVersion.objects.get(kind="pool")
    PoolStudy.objects.create(version=pool, study=study)
    rosa.post(
        reverse("console:collection-study-qrels", args=["tracks", study.pk]),
        {"round": 1, "rule": "majority"},
    )
    qrels = collection.files.qrels().get()
    rules = {"measures": ["nDCG@10"], "primary": ["nDCG@10"]}
    request_evaluation(qrels=qrels, runs=[good, bad], rules=rules, **common)
    drawn = "The 5 targets of sample 1 were drawn with probabilities from 0.33 to 0.50."
    assert f"{drawn} Means and intervals here count each topic once" in page(rosa, "evaluation")
    rosa.post(reverse("console:collection-report", args=["tracks"]))
    text = page(rosa, "report")
    assert f"How runs do on all targets. {drawn}" in text
    assert text.count(drawn) == 3


def test_a_report_is_written_once_for_the_same_results_and_says_when_it_is_old(
    rosa, researcher, collection, study
):
    address = reverse("console:collection-report", args=["tracks"])
    rosa.post(address)
    assert "Nothing may be concluded yet: no run was evaluated." in page(rosa, "report")
    rosa.post(address)
    assert CollectionVersion.objects.filter(kind="report").count() == 1
    rosa.post(
        reverse("console:collection-study-qrels", args=["tracks", study.pk]),
        {"round": 1, "rule": "any"},
    )
    rosa.post(address)
    assert CollectionVersion.objects.filter(kind="report").count() == 2
