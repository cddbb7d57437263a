import csv
import io
from zipfile import ZipFile

import krippendorff
import pandas as pd
import pytest
from django.urls import reverse
from django.utils.translation import gettext

from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, RESULTS, SIMULATED
from metrics.stored_scores import write_scores
from tests.annotation.studies import make_simulated, rating_study
from tests.codes import codes_on
from tests.console.filled import scored_study
from tests.presentation.latex import compile_folder
from tests.validation.pages.test_results_page import clear_study, close_study
from validation.paper import letters_of
from validation.result_kinds.validation import StoredHumanResults, current_human_results

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]


@pytest.fixture
def look(rosa):
    def page(study, name="paper", *args):
        return rosa.get(reverse(f"console:{name}", args=[study.slug, *args]))

    return page


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(b"".join(answer).decode("utf-8-sig"))))


def test_the_table_of_systems_has_the_numbers_of_the_exported_judgments(look, researcher):
    study = clear_study(researcher)
    page = look(study)
    tables = {
        block["table"].name: block["table"]
        for _title, blocks in page.context["sections"]
        for block in blocks
        if "table" in block
    }
    assert {"systems", "agreement"} <= set(tables)
    judgments = pd.read_csv(
        io.BytesIO(b"".join(look(study, "download", "judgments.csv").streaming_content))
    )
    by_item = judgments.groupby(["system", "item"])["value"].mean()
    means = by_item.groupby("system").mean()
    rows = {row["System"]: row for row in rows_of(look(study, "paper-file", "systems", "csv"))}
    assert set(rows) == set(means.index)
    [mean] = [name for name in next(iter(rows.values())) if name.endswith(": mean")]
    for system, row in rows.items():
        assert float(row[mean]) == pytest.approx(means[system])
        assert float(row[f"{mean}, lower limit"]) <= float(row[mean])


def test_agreement_and_metrics_have_the_numbers_of_the_exported_files(look, researcher):
    study = clear_study(researcher)
    metric = {
        (item.key, candidate.key): (5 * n + 3 * at) % 7
        for n, item in enumerate(study.items.all())
        for at, candidate in enumerate(item.candidates.all())
    }
    write_scores(study=study, metric="any", signature="any|v:1", values=metric)
    study.refresh_from_db()
    look(study)
    judgments, scores = (
        pd.read_csv(io.BytesIO(b"".join(look(study, "download", name).streaming_content)))
        for name in ("judgments.csv", "scores.csv")
    )
    [row] = rows_of(look(study, "paper-file", "agreement", "csv"))
    ratings = judgments.pivot(index="annotator", columns=["item", "candidate"], values="value")
    expected = krippendorff.alpha(ratings.to_numpy(), level_of_measurement=row["Level"])
    assert float(row["Krippendorff's alpha"]) == pytest.approx(expected)
    means = judgments.groupby(["item", "candidate"], as_index=False)["value"].mean()
    both = means.merge(scores, on=["item", "candidate"], suffixes=("", "_of_metric"))
    [row] = rows_of(look(study, "paper-file", "correlations-item", "csv"))
    for name, method in {
        "Pearson's r": "pearson",
        "Spearman's ρ": "spearman",
        "Kendall's τ-b": "kendall",
    }.items():
        of_items = [
            group["value"].corr(group["value_of_metric"], method=method)
            for _item, group in both.groupby("item")
        ]
        assert float(row[name]) == pytest.approx(pd.Series(of_items).mean())


def test_letters_say_which_systems_differ(look, researcher):
    for study, shares in ((clear_study(researcher), False), (close_study(researcher), True)):
        find_study_kind(RESULTS).compute_now(study)
        study.refresh_from_db()
        results = StoredHumanResults(study, current_human_results(study))
        [(part, systems), *_rest] = results.systems.items()
        first, second, *_ = letters_of(systems, results.pairs[part]).values()
        assert bool(set(first) & set(second)) == shares


def test_authors_answer_open_questions_of_the_datasheet(look, rosa, researcher):
    study = clear_study(researcher)
    find_study_kind(RESULTS).compute_now(study)
    [question] = study.questions.all()
    before = look(study, "paper-participants").context["open_fields"]
    names = ("1/1.1", "5/5.2", f"4-{question.name}/4.1.1")
    for sent in ({names[0]: "50 %\r\nof it"}, {names[1]: "None", names[2]: "It is good"}):
        rosa.post(reverse("console:paper-datasheet", args=[study.slug]), sent)
    page = look(study, "paper-participants")
    assert len(page.context["open_fields"]) == len(before) - 3
    archive = ZipFile(io.BytesIO(look(study, "paper-file", "paper", "zip").content))
    files = [archive.read(f"heds/heds.{form}").decode() for form in ("md", "json")]
    files.append("".join(archive.read(n).decode() for n in archive.namelist() if "/heds-" in n))
    for text in (*files, page.text, look(study, "report-file", "heds.md").text):
        assert all(answer in text for answer in ("of it", "None", "It is good"))


@pytest.mark.slow
def test_the_archive_compiles_and_has_each_table_and_figure_in_each_form(
    look, researcher, tmp_path
):
    study = scored_study(owner=researcher)
    page = look(study)
    archive = ZipFile(io.BytesIO(look(study, "paper-file", "paper", "zip").content))
    names = set(archive.namelist())
    blocks = [block for _title, blocks in page.context["sections"] for block in blocks]
    for block in blocks:
        if "table" in block:
            table = block["table"].name
            assert {f"tables/{table}.tex", f"tables/{table}.csv"} <= names
            assert archive.read(f"tables/{table}.tex").decode() == block["latex"]
        if "figure" in block:
            figure = block["figure"].name
            assert {f"figures/{figure}.pdf", f"figures/{figure}.svg"} <= names
            assert look(study, "paper-file", figure, "svg").status_code == 200
    assert "tables/people.tex" in names
    archive.extractall(tmp_path)
    assert compile_folder(tmp_path, "paper").startswith(b"%PDF")
    assert look(study, "paper-file", "nothing", "csv").status_code == 404


def test_a_rehearsal_has_no_paper_and_a_study_without_answers_says_so(look, researcher):
    study = clear_study(researcher)
    make_simulated(study)
    find_study_kind(AGREEMENT).compute_now(study)
    assert gettext(SIMULATED) in look(study).context["sections"][0][1][0]["latex"]
    assert look(study, "paper-file", "systems-simulated", "csv").status_code == 200
    study.team, study.owner, study.rehearsal_of = None, None, close_study(researcher)
    study.save()
    page = look(study)
    assert "rehearsal" in codes_on(page.text)
    assert "sections" not in page.context
    for args in (("paper", "zip"), ("systems", "csv")):
        assert look(study, "paper-file", *args).status_code == 404
    assert "no_judgments" in codes_on(look(rating_study("empty", owner=researcher)).text)
