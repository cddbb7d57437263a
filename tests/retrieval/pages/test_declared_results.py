import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow.parquet as pq
import pytest
from django.core.management import CommandError

from accounts.roles import Scope
from results import kinds, models
from results.computing import compute_result
from results.kinds import Count, Estimate, Table, Text, sentence
from results.settings import Choice, Flag, Inputs, Number, setting
from retrieval.exceptions import RunsUnfit
from retrieval.models import Collection
from retrieval.result_kinds.base import CollectionKind
from tests.annotation.importing import command_output
from tests.console.api.conftest import program_of
from tests.console.pages import refused_fields
from tests.retrieval.conftest import record_of
from work import registry

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks", "_toy")]
PAGE = "/collections/tracks/results/length/"
API = "/api/v1/collections/tracks/length/"


@dataclass(frozen=True, kw_only=True)
class LengthSettings:
    least: int = setting(0, Number(label="Lines at least", least=0, most=1000))
    order: str = setting("name", Choice(label="Order", choices=[("name", "n"), ("lines", "l")]))
    shouting: bool = setting(False, Flag(label="Capitals", is_advanced=True))


class LengthKind(CollectionKind):
    name = "length"
    title = "Lengths"
    job = "measure_length"
    job_label = "Counting"
    settings = LengthSettings
    inputs = {"runs": Inputs(label="Runs", several=True, begins_with_all=True)}
    tables = {
        "runs": Table(
            "Runs",
            {"run": Text("Run"), "n_lines": Count("Lines"), "share": Estimate("Share", digits=2)},
        )
    }

    def check_request(self, chosen: kinds.Chosen, settings: Mapping[str, Any]) -> None:
        if len(chosen["runs"]) < 2:
            raise RunsUnfit("Choose two runs.", code="too_few_runs")

    def compute(self, given: kinds.Given[Collection]) -> kinds.Computed:
        rows = [
            {
                "run": one.name.upper() if given.settings["shouting"] else one.name,
                "n_lines": one.n_lines,
                "share": one.n_lines / sum(each.n_lines for each in given.inputs),
                "ci_low": None,
                "ci_high": None,
                "reason": "a count",
            }
            for one in given.inputs
            if one.n_lines >= given.settings["least"]
        ]
        return kinds.Computed(record={"runs": rows}, facts={"n_topics": 25}, notes=["Made up."])

    def answer(self, result: models.Result) -> str:
        return sentence("counted", "{n} runs have lines.", n=len(result.record["runs"]))

    def charts(self, result: models.Result) -> Iterator[kinds.Chart]:
        import pandas as pd

        frame = pd.DataFrame(result.record["runs"])
        yield kinds.Chart("lines", "Lines", "Lines of runs", frame, partial(draw_lines, frame))


def draw_lines(frame):
    import altair as alt

    return alt.Chart(frame).mark_bar().encode(x="n_lines:Q", y="run:N")


@pytest.fixture
def _toy(monkeypatch):
    kinds.result_kinds()
    registry.job_kinds()
    monkeypatch.setattr(kinds, "_kinds", dict(kinds._kinds))
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    kinds.register_kind(LengthKind)
    handler = partial(compute_result, LengthKind())
    registry.register("measure_length", label="Counting", queue=registry.INTERACTIVE)(handler)


@pytest.fixture
def reader(researcher):
    return program_of(researcher, *Scope)


def form_of(collection, **more):
    runs = [file.pk for file in collection.files.runs()]
    return {"runs": runs, "least": "1", "order": "lines"} | more


def test_its_page_has_a_form_of_its_settings_and_shows_the_result(rosa, collection):
    form = rosa.get(PAGE).context["form"]
    assert list(form.fields) == ["runs", "least", "order", "shouting"]
    assert [field.name for field in form.advanced_fields] == ["shouting"]
    one_run = {"runs": form_of(collection)["runs"][:1]}
    for wrong, codes in (
        ({"least": "2000"}, {"least": ["max_value"]}),
        (one_run, {"__all__": ["too_few_runs"]}),
    ):
        assert refused_fields(rosa.post(PAGE, form_of(collection) | wrong)) == codes
    assert rosa.post(PAGE, form_of(collection)).status_code == 302
    page = rosa.get(PAGE)
    assert page.context["view"].answer.code == "counted"
    assert page.context["form"]["order"].value() == "lines"
    assert f'data-chart="{PAGE}lines.json/picture/?version=1"' in page.content.decode()
    assert rosa.get(f"{PAGE}lines.json/picture/").json()["mark"]["type"] == "bar"
    [table] = page.context["view"].folds
    assert table.table.rows[0][2].missing == "a count"


def test_the_same_is_computed_once_and_the_signature_names_the_settings(rosa, collection):
    for _again in range(2):
        rosa.post(PAGE, form_of(collection))
    assert models.Result.objects.count() == 1
    rosa.post(PAGE, form_of(collection, shouting="on"))
    assert models.Result.objects.count() == 2
    signature = rosa.get(PAGE).context["view"].signature
    assert signature.startswith("length|least:1|order:lines|shouting:yes|sha256:")


def test_its_tables_are_files(rosa, collection):
    rosa.post(PAGE, form_of(collection))
    where = "/collections/tracks/tables/length"
    rows = list(csv.reader(io.StringIO(rosa.get(f"{where}/runs.csv").content.decode())))
    stored = models.Result.objects.get().record["runs"]
    written = [(row[0], float(row[2])) for row in rows[1:]]
    assert written == [(one["run"], one["share"]) for one in stored]
    beginnings = {"tex": "\\begin{table}", "md": "**Runs**"}
    beginnings |= {"html": "<!DOCTYPE html>", "jsonl": "{"}
    for form, beginning in beginnings.items():
        assert rosa.get(f"{where}/runs.{form}").content.decode().startswith(beginning), form
    parquet = pq.read_table(io.BytesIO(rosa.get(f"{where}/runs.parquet").content))
    assert parquet.column(2).to_pylist() == [one["share"] for one in stored]
    assert rosa.get(f"{where}/runs.pdf").status_code == 404
    page = rosa.get(PAGE).content.decode()
    assert all(f"{where}/runs.{form}?version=1" in page for form in (*beginnings, "parquet"))
    assert json.loads(rosa.get(f"{where}/all.json").content)["tables"]["runs"] == stored


def test_programs_request_and_read_it(reader, collection):
    answer = reader.send("post", API, {"runs": ["dense", "bm25"], "least": 3})
    assert answer.status_code == 202
    assert reader.get(answer["Location"]).json()["state"] == "done"
    [row] = reader.get(API).json()["results"]
    assert row["settings"] == {"least": 3, "order": "name", "shouting": False}
    one = reader.get(f"{API}1/").json()
    assert [each["run"] for each in one["tables"]["runs"]] == ["bm25", "dense"]
    assert [file["name"] for file in one["files"]] == ["bm25", "dense"]
    for body, field in (
        ({"runs": ["x", "dense"]}, "runs"),
        ({"least": -1}, "least"),
        ({"colour": "red"}, "colour"),
    ):
        answer = reader.send("post", API, body)
        assert (answer.status_code, set(answer.json()["errors"])) == (400, {field})


def test_a_command_computes_it(collection):
    printed = record_of("compute_result", "length", "tracks", "--least", "3", "--shouting")
    assert printed["tables"]["runs"] == models.Result.objects.get().record["runs"]
    assert printed["settings"]["shouting"] is True
    assert printed["notes"] == ["Made up."]
    chosen = ("tracks", "--runs", "dense", "bm25")
    assert "dense" in command_output("compute_result", "length", *chosen)
    refused = [("tracks", "--least", value) for value in ("-1", "1001", "x")]
    for wrong in (("tracks", "--runs", "none", "bm25"), ("nothing",), *refused):
        with pytest.raises(CommandError):
            command_output("compute_result", "length", *wrong)
