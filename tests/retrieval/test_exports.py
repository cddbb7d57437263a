import csv
import io
import json
import re
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model

from annotation import exceptions, models
from annotation.label_sets import Rule, make_label_set
from annotation.readers.pooled_batch import read_pooled_batch
from presentation.row_files import row_csv
from results.models import Result
from retrieval.audit.collections import audit_collection
from retrieval.exceptions import CatalogueUnfit, PoolFileFaults
from retrieval.exports.assessors import assessor_lines, provenance_rows, reason_rows
from retrieval.exports.grades import scale_of
from retrieval.exports.qrels import (
    RULES,
    judgment_source,
    label_source,
    qrels_of,
    sizes_of,
    study_qrels,
)
from retrieval.models import PoolStudy
from retrieval.study_files import write_released_layout
from tests.annotation import studies
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming

pytestmark = pytest.mark.django_db

GRADES = ["Not relevant", "Related", "Relevant", "Can't judge"]


def graded_study(categories=None, **fields):
    """Documents a, b, c of a topic, graded by three; nobody can judge c, Cyd not a either."""
    study = models.Study.objects.create(slug="graded", title="Graded", kind="rating")
    as_categories = {"kind": "category", "level": "nominal", "scale_max": 3} | fields
    as_categories["categories"] = GRADES if categories is None else categories
    models.Question.objects.create(study=study, name="relevance", wording="?", **as_categories)
    studies.add_candidates(
        study.items.create(key="t1", context="A query", position=0), ("a", "b", "c")
    )
    studies.rate(study, "Ann", "t1", {"a": 2, "b": 1, "c": 3})
    studies.rate(study, "Bob", "t1", {"a": 1, "b": 0, "c": 3})
    studies.rate(study, "Cyd", "t1", {"a": 3, "b": 1, "c": 3})
    return study


def lines(study, **options):
    return [line.strip() for line in qrels_of(judgment_source(study, **options)).lines()]


@pytest.mark.parametrize(
    ("rule", "grades"), [("any", (2, 1)), ("all", (1, 0)), ("majority", (1, 1)), ("votes", (2, 2))]
)
def test_grades_of_several_assessors_become_one_by_a_rule(rule, grades):
    assert lines(graded_study(), rule=rule) == [f"t1 0 a {grades[0]}", f"t1 0 b {grades[1]}"]


def test_what_nobody_can_judge_or_was_asked_is_pooled_and_not_judged():
    assert lines(graded_study(), with_unjudged=True)[-1] == "t1 0 c -1"
    study = studies.alternatives_study()
    studies.rate(study, "Ann", "boot", {"clog": 1})
    # Nobody judged the gown: a topic without a judgment would count as 0 in every mean.
    assert lines(study, with_unjudged=True) == ["boot 0 clog 1", "boot 0 pump -1", "boot 0 flat -1"]
    assert lines(study) == ["boot 0 clog 1"]


def test_an_answer_may_be_named_that_says_nothing():
    study = graded_study(categories=["No", "Related", "Yes", "Blurred"])
    assert lines(study, rule="any") == ["t1 0 a 3", "t1 0 b 1", "t1 0 c 3"]
    assert lines(study, rule="any", cannot_judge=["Blurred"]) == ["t1 0 a 2", "t1 0 b 1"]
    with refused(exceptions.StudyUnfit, "answer_unknown"):
        lines(study, cannot_judge=["Dark"])


def test_an_answer_in_the_middle_that_says_nothing_leaves_no_gap():
    scale = scale_of(graded_study(categories=["No", "Cannot tell", "Related", "Yes"]).question())
    assert dict(scale.names) == {"No": 0, "Cannot tell": None, "Related": 1, "Yes": 2}


@pytest.mark.parametrize(
    "label",
    ["Can't judge", "I can’t tell", "Cannot judge from this picture", "Don't know", "Unrateable"],
)
def test_labels_that_say_nothing_are_known(label):
    assert scale_of(graded_study(categories=["No", "Yes", label]).question()).names[label] is None


def test_the_lowest_labelled_point_is_grade_zero():
    points = {"kind": "likert", "level": "ordinal", "scale_min": 1, "scale_max": 3}
    study = graded_study(categories=[], **points)
    with refused(exceptions.StudyUnfit, "value_no_grade"):
        lines(study)
    assert lines(study, rule="all", zero=0) == ["t1 0 a 1", "t1 0 b 0", "t1 0 c 3"]
    study.questions.get().judgments.filter(value=0).update(value=1)
    assert lines(study, rule="any") == ["t1 0 a 2", "t1 0 b 0", "t1 0 c 2"]


def test_values_without_a_grade_are_refused():
    made = make_label_set(question=graded_study(level="ordinal").question(), rule=Rule("mean"))
    with refused(exceptions.StudyUnfit, "label_no_grade"):
        qrels_of(label_source(made.label_set))
    models.Study.objects.all().delete()
    study = graded_study(categories=[], kind="line", level="ordinal")
    made = make_label_set(question=study.question(), rule=Rule("mean"))
    with refused(exceptions.StudyUnfit, "value_no_grade"):
        qrels_of(label_source(made.label_set))
    studies.rate(study, "Dee", "t1", {"a": 1.5})
    with refused(exceptions.StudyUnfit, "value_no_grade"):
        lines(study)
    with refused(exceptions.StudyUnfit, "not_graded"):
        judgment_source(studies.rating_study())


def test_sizes_are_counted_with_the_target_and_without():
    study = studies.ticked_study()
    record = sizes_of(judgment_source(study)).record()
    assert (record["n_assessed"], record["n_with_relevant"], record["mean_relevant"]) == (2, 1, 2)
    assert record["mean_relevant_with_target"] == 3
    assert record["mean_relevant_of_all_with_target"] == 2
    assert study_qrels(study).sizes.record() == record


def test_each_assessor_and_round_has_a_group_of_its_own():
    study = studies.alternatives_study(pools={"boot": ("clog", "pump")})
    studies.tick(study, "Ann", "boot", {"clog"})
    studies.tick(study, "Bob", "boot", set())
    studies.tick(study, "Ann", "boot", {"pump"}, round=2)
    studies.tick(study, "Eve", "boot", {"pump"}, status="rejected")
    of_clog = "boot Ann clog 1\nboot Bob clog 0\nboot Ann.2 clog 0\n"
    of_pump = "boot Ann pump 0\nboot Bob pump 0\nboot Ann.2 pump 1\n"
    assert "".join(assessor_lines(judgment_source(study))) == of_clog + of_pump


def test_assessors_answers_that_say_nothing_are_unjudged_and_labels_become_qrels():
    study = graded_study()
    text = "".join(assessor_lines(judgment_source(study, with_unjudged=True)))
    assert "t1 Cyd a -1" in text.splitlines()
    assert "Cyd a" not in "".join(assessor_lines(judgment_source(study)))
    made = make_label_set(question=study.question(), rule=Rule("dawid_skene"))
    by_labels = qrels_of(label_source(made.label_set))
    assert by_labels.rule == "labels 1, dawid_skene"
    assert {row.docno for row in by_labels.table.itertuples()} == {"a", "b"}  # nobody can judge c


def test_an_assessor_s_name_with_a_space_is_refused():
    study = studies.alternatives_study()
    studies.tick(study, "Ann Lee", "boot", set())
    with refused(exceptions.StudyUnfit, "space_in_name"):
        list(assessor_lines(judgment_source(study)))


def table(rows):
    return list(csv.DictReader(io.StringIO("".join(row_csv(rows)))))


def test_each_line_leads_to_the_judgments_that_it_was_made_of():
    study = studies.alternatives_study(pools={"boot": ("clog", "pump", "flat")})
    first = studies.rate(study, "Ann", "boot", {"clog": 1, "pump": 0})
    second = studies.rate(study, "Bob", "boot", {"clog": 0})
    source = judgment_source(study, rule="any", with_unjudged=True)
    ids = {first.pk: ("H1", "A1")}
    rows = table(provenance_rows(source, find_ids=lambda submissions: ids))
    columns = ("line", "docno", "grade", "source", "assessor", "value", "hit_id", "assignment_id")
    assert [tuple(row[name] for name in (*columns, "submission")) for row in rows] == [
        ("1", "clog", "1", "judgment", "Ann", "1.0", "H1", "A1", str(first.pk)),
        ("1", "clog", "1", "judgment", "Bob", "0.0", "", "", str(second.pk)),
        ("2", "pump", "0", "judgment", "Ann", "0.0", "H1", "A1", str(first.pk)),
        ("3", "flat", "-1", "pooled", "", "", "", "", ""),
    ]
    written = [line.split() for line in qrels_of(source).lines()]
    assert all(written[int(row["line"]) - 1][2] == row["docno"] for row in rows)


def test_decisions_that_override_a_rule_are_named():
    study = studies.alternatives_study(pools={"boot": ("clog",)})
    studies.tick(study, "Ann", "boot", set())
    senior = get_user_model().objects.create_user("senior")
    judged = {"candidate": study.items.get().candidates.get(), "question": study.question()}
    models.Adjudication.objects.create(value=1, decided_by=senior, **judged)
    made = make_label_set(question=study.question(), rule=Rule("majority"))
    rows = table(provenance_rows(label_source(made.label_set)))
    said = [(row["source"], row["grade"], row["value"]) for row in rows]
    assert said == [("decision", "1", "1.0"), ("judgment", "1", "0.0")]


def test_imported_batches_keep_the_ids_of_their_hits(tmp_path):
    path = tmp_path / "batch.csv"
    path.write_text("Input.target1,Input.top1,HITId,top1\nboot,clog,H7,True\n")
    command_output("import_mturk_batch", path, study="s")
    [row] = table(provenance_rows(judgment_source(models.Study.objects.get())))
    assert (row["hit_id"], row["assessor"]) == ("H7", "assessor-H7")


def reasoned_study():
    study = studies.ticked_study()
    models.Submission.objects.filter(item__key="boot").update(justification=BOOT)
    models.Submission.objects.filter(item__key="gown").update(justification=GOWN)
    submission = models.Submission.objects.get(item__key="boot")
    for docno, text in (("clog", "striped as well"), ("flat", "too flat")):
        of = {"submission": submission, "candidate": submission.item.candidates.get(key=docno)}
        models.WrittenAnswer.objects.create(question="reason", text=text, **of)
    return study


BOOT, GOWN = "Same heel and colour", "Another COLOUR"


def test_reasons_are_rows_with_a_grade_and_are_counted_by_terms(tmp_path):
    study = reasoned_study()
    columns = ("topic", "docno", "reason", "grade", "relevant_documents")
    rows = table(reason_rows(judgment_source(study)))
    assert [tuple(row[name] for name in columns) for row in rows] == [
        ("boot", "", BOOT, "", "clog pump"),
        ("boot", "clog", "striped as well", "1", "clog pump"),
        ("boot", "flat", "too flat", "0", "clog pump"),
        ("gown", "", GOWN, "", ""),
    ]
    record = json.loads(command_output("reason_terms", "ticked", json=True))
    assert (record["n_reasons"], record["n_relevant"], record["n_other"]) == (4, 2, 2)
    counts = {row["term"]: (row["n_relevant"], row["n_other"]) for row in record["terms"]}
    counted = [counts[name] for name in ("colour", "heel", "pattern", "price")]
    assert counted == [(1, 1), (1, 1), (1, 0), (0, 0)]
    text = command_output("reason_terms", "ticked")
    assert "price" not in text
    assert re.findall(r"\d+", text.splitlines()[-1]) == ["4", "2", "2"]
    path = tmp_path / "terms.csv"
    path.write_text("term,word\nlikeness,same\nlikeness,as well\n")
    record = json.loads(command_output("reason_terms", "ticked", terms=path, json=True))
    assert [(row["term"], row["n"]) for row in record["terms"]] == [("likeness", 2)]


def test_a_study_leaves_in_the_released_layout_and_comes_back(tmp_path):
    study = studies.alternatives_study(
        pools={"boot": ("clog", "pump", "flat"), "gown": ("coat", "clog")}
    )
    studies.tick(study, "Ann", "boot", {"clog", "flat"})
    studies.tick(study, "Bob", "gown", set())
    files = write_released_layout(judgment_source(study), tmp_path / "released")
    pools, alternatives, numbers = (path.read_text().splitlines() for path in files)
    item = study.items.get(key="boot").pk
    assert pools[:2] == [
        "Input.target1,Input.top1,Input.top2,Input.top3,HITId,top1,top2,top3",
        f"boot,clog,pump,flat,alternatives-{item},True,False,True",
    ]
    assert numbers == ["docno,docid", *(f"{name},{n}" for n, name in enumerate(
        ("boot", "clog", "coat", "flat", "gown", "pump")))]  # fmt: skip
    assert alternatives == [
        "Input.target1,target_img_id,alternative_id_y,target_alt_id,qid",
        'boot,0,"1,3","u0,1,3-t0",u0-t0',
    ]
    draft = read_pooled_batch(files[0])
    assert [len(one.candidates) for one in draft.items] == [3, 2]
    assert draft.report.n_used == draft.report.n_rows == 2
    assert not draft.report.parts
    audit = audit_collection([tmp_path / "released"])
    assert (audit.n_defects, audit.refused) == (0, [])


def test_several_assessors_are_named_in_the_released_layout(tmp_path):
    study = studies.alternatives_study(pools={"boot": ("clog",)})
    studies.tick(study, "Ann", "boot", {"clog"})
    studies.tick(study, "Bob", "boot", set())
    files = write_released_layout(judgment_source(study), tmp_path)
    rows = list(csv.DictReader(io.StringIO(files[0].read_text())))
    assert [(row["WorkerId"], row["top1"]) for row in rows] == [("Ann", "True"), ("Bob", "False")]
    assert len(read_pooled_batch(files[0]).submissions) == 2


def test_items_have_their_numbers_in_a_catalogue(tmp_path):
    study = studies.alternatives_study(pools={"boot": ("clog",)})
    studies.tick(study, "Ann", "boot", {"clog"})
    catalogue = tmp_path / "names.txt"
    catalogue.write_text("sock\nclog\nboot\n")
    files = write_released_layout(judgment_source(study), tmp_path, catalogue=catalogue)
    assert files[1].read_text().splitlines()[1] == 'boot,2,1,"u2,1-t0",u2-t0'
    catalogue.write_text("sock\nboot\n")
    with refused(CatalogueUnfit, "item_unknown"):
        write_released_layout(judgment_source(study), tmp_path, catalogue=catalogue)
    catalogue.write_text("sock\nboot\nsock\n")
    with refused_naming(PoolFileFaults, "'sock'", 1, 3):
        write_released_layout(judgment_source(study), tmp_path, catalogue=catalogue)


def test_the_released_layout_names_the_document_that_a_topic_is_about(tmp_path, collection):
    """Topic 2 is about boot, which is in its own pool and was ticked; and its pool as a file."""
    study = studies.alternatives_study(pools={"2": ("clog", "boot")})
    studies.tick(study, "Ann", "2", {"clog", "boot"})
    pool = tmp_path / "pool.csv"
    pool.write_text("topic,target,docno\n2,boot,clog\n2,boot,boot\n")
    catalogue = tmp_path / "catalogue.csv"
    catalogue.write_text("docno,title,image\nsock,Sock,\nclog,Clog,gone.png\nboot,Boot,\n")
    files = write_released_layout(
        judgment_source(study), tmp_path / "released", catalogue=catalogue, pool=pool
    )
    pools, alternatives, _numbers = (path.read_text().splitlines() for path in files)
    assert pools[1].startswith("boot,clog,boot,")
    assert alternatives[1] == 'boot,2,"1,2","u2,1,2-t0",u2-t0'
    audit = audit_collection([tmp_path / "released"])
    assert "target_in_pool" in {one.name for file in audit.files for one in file.findings}
    catalogue.write_text("docno\nclog\nboot\n")
    with refused_naming(CatalogueUnfit, "'2'", "--pool"):
        write_released_layout(judgment_source(study), tmp_path, catalogue=catalogue)
    catalogue.write_text("clog\nboot\n")
    with refused(PoolFileFaults, "missing_column"):
        write_released_layout(judgment_source(study), tmp_path, catalogue=catalogue)
    with refused(exceptions.StudyUnfit, "not_ticks"):
        write_released_layout(judgment_source(graded_study()), tmp_path)
    stored = {"kind": "pool", "number": 1, "form": 1, "fingerprint": ""}
    version = Result.objects.create(subject=collection, **stored)
    version.pooled_topics.create(topic="2", docno="boot")
    PoolStudy.objects.create(version=version, study=study)
    files = write_released_layout(judgment_source(study), tmp_path)
    assert files[0].read_text().splitlines()[1].startswith("boot,clog,boot,")
    assert files[2].read_text().splitlines()[1:] == ["boot,0", "clog,1"]


def test_the_command_writes_all_files_and_makes_a_label_set_of_a_model_of_assessors(tmp_path):
    study = reasoned_study()
    paths = {name: tmp_path / name for name in ("assessors", "provenance", "reasons")}
    paths |= {"output": tmp_path / "qrels", "released_layout": tmp_path / "released"}
    options = {"rule": "votes", "unjudged": True, "json": True}
    record = json.loads(command_output("export_qrels", "ticked", **options, **paths))
    assert record["n_relevant"] == 2
    assert record["rule"] == "votes"
    assert len(record["files"]) == 7
    assert all(Path(path).stat().st_size for path in record["files"])
    assert not models.LabelSet.objects.of(study).exists()
    path = tmp_path / "qrels"
    for _ in range(2):
        sentence = command_output("export_qrels", "ticked", output=path, rule="dawid_skene")
        assert "dawid_skene" in sentence
    assert models.LabelSet.objects.of(study).count() == 1


@pytest.fixture
def judged_by_three():
    """Clog ticked by three of three, pump by two, flat by one; of four, coat by two."""
    study = studies.alternatives_study(
        pools={"boot": ("clog", "pump", "flat", "sole"), "gown": ("coat",)}
    )
    studies.tick(study, "Ann", "boot", {"clog", "pump", "flat"})
    studies.tick(study, "Bob", "boot", {"clog", "pump"})
    studies.tick(study, "Cyd", "boot", {"clog"})
    for person, ticked in (("Ann", {"coat"}), ("Bob", {"coat"}), ("Cyd", set()), ("Dee", set())):
        studies.tick(study, person, "gown", ticked)
    return study


@pytest.mark.parametrize(
    ("rule", "relevant"),
    [("majority", {"clog", "pump"}), ("any", {"clog", "pump", "flat", "coat"}), ("all", {"clog"})],
)
def test_a_rule_makes_one_of_several_annotators(judged_by_three, rule, relevant):
    qrels = study_qrels(judged_by_three, rule=rule)
    assert set(qrels.table.loc[qrels.table["relevance"] == 1, "docno"]) == relevant
    assert (qrels.n_topics, qrels.n_lines, qrels.n_relevant) == (2, 5, len(relevant))
    assert qrels.rule == rule


def test_one_annotator_is_the_same_under_every_rule_and_each_round_has_qrels():
    study = studies.ticked_study()
    lines = {rule: list(study_qrels(study, rule=rule).lines()) for rule in RULES}
    assert lines["majority"] == lines["any"] == lines["all"]
    boot, gown = ["boot 0 clog 1\n", "boot 0 pump 1\n", "boot 0 flat 0\n"], ["skirt", "coat"]
    assert lines["majority"] == [*boot, *(f"gown 0 {docno} 0\n" for docno in gown)]
    studies.tick(study, "Bob", "boot", {"flat"}, round=2)
    text = "".join(study_qrels(study, round=2).lines())
    assert text == "boot 0 clog 0\nboot 0 pump 0\nboot 0 flat 1\n"
    assert study_qrels(study, round=1).n_lines == 5
    with refused(exceptions.StudyUnfit, "no_judgments"):
        study_qrels(study, round=3)


def test_only_the_first_question_makes_qrels():
    study = studies.ticked_study()
    models.Question.objects.create(study=study, name="beauty", wording="?", position=1)
    studies.rate(study, "Ann", "gown", {"coat": 90}, question="beauty")
    assert study_qrels(study).n_relevant == 2
    assert study.questions.get(position=0).name == studies.ACCEPTABLE


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\u00a0"])
def test_a_key_with_a_blank_is_refused(blank):
    topic, docno = f"a{blank}boot", f"a{blank}clog"
    one = studies.alternatives_study("one", pools={topic: ("clog",)})
    two = studies.alternatives_study("two", pools={"boot": ("pump", docno)})
    studies.tick(one, "Ann", topic, set())
    studies.tick(two, "Ann", "boot", set())
    for study, name in ((one, topic), (two, docno)):
        with refused(exceptions.StudyUnfit, "space_in_name") as error:
            study_qrels(study)
        assert name in str(error.value)


def test_an_unknown_rule_is_refused():
    with refused_naming(ValueError, "'most'", *RULES):
        study_qrels(studies.ticked_study(), rule="most")
