import json
import re

import pytest

from metrics.exceptions import FileUnfit, ModelUnfit, ParameterRefused
from metrics.models import JudgeVersion, Score, ScoringRun
from metrics.scorers.judges import capabilities, geval, grade
from presentation.files import FileUnwritable
from tests.annotation.importing import command_output
from tests.annotation.studies import rating_study
from tests.codes import refused, refused_naming
from tests.metrics.scorers.judges.foreign import Says, chat, error

TONE = geval.GEvalSettings(aspect="Tone", criteria="Is it kind?", low=1, high=3, n=4)
TONED = "--set=geval.settings=tone"
PROBES = 6


def one_reply(number: int, body: dict) -> Says:
    """Whatever n is; log-probabilities never."""
    if "prompt" in body:
        return error(404)
    is_random = capabilities.DRAWN[0]["content"] == body["messages"][0]["content"]
    return chat(f"Cat {number}" if is_random else "2")


def as_many_as_requested(number: int, body: dict) -> Says:
    return chat(*["3"] * body["n"]) if "n" in body else one_reply(number, body)


@pytest.fixture(autouse=True)
def endpoint(foreign, settings, tmp_path):
    """The judges' endpoint is the foreign server, and nobody has probed it."""
    settings.JUDGE = {"JUDGE_BASE_URL": foreign.base_url, "JUDGE_MODEL": "foreign"}
    settings.JUDGE_PROBES = tmp_path / "probes"
    foreign.answer = one_reply
    return foreign


@pytest.fixture
def tone(tmp_path):
    path = tmp_path / "tone.json"
    path.write_text(TONE.to_json())
    return path


@pytest.fixture
def study(db, tone):
    """Four responses, and a question of the study's own."""
    study = rating_study(n_items=2)
    command_output("keep_judge", "ratings", "tone", tone)
    return study


def score_tone(*options: object) -> str:
    return command_output("score_study", "ratings", "--metric=geval", TONED, *options)


def planned(*options: str) -> dict:
    return json.loads(score_tone("--dry-run", "--json", *options))[0]["estimate"]


def test_the_probe_reports_what_it_found_and_its_answers(endpoint, settings):
    endpoint.says(chat("2"))
    seen = json.loads(command_output("probe_judge", "--json"))
    assert (seen["several_replies"], seen["top_logprobs"]) == (False, 0)
    assert not seen["samples_differ"]
    assert "'2'" in dict(seen["evidence"])["chat, n=2"]
    output = command_output("probe_judge")
    assert all(f"{asked}: {found}" in output for asked, found in seen["evidence"])
    assert len(endpoint.bodies) == 2 * PROBES
    settings.JUDGE = {}
    with refused(ModelUnfit, "no_endpoint"):
        command_output("probe_judge")


def test_steps_are_written_into_the_settings_once(endpoint, tone):
    endpoint.says(chat("1. Read.\n2. Rate."))
    assert f"geval.settings={tone}" in command_output("geval_steps", tone)
    written = geval.GEvalSettings.from_json(tone.read_text())
    assert (written.steps, written.steps_model) == ("1. Read.\n2. Rate.", "foreign-1")
    with refused(ParameterRefused, "has_steps"):
        command_output("geval_steps", tone)
    endpoint.says(chat("1. Look."))
    command_output("geval_steps", tone, "--anew")
    assert geval.GEvalSettings.from_json(tone.read_text()).steps == "1. Look."


def test_steps_of_a_preset_go_into_a_file_if_it_can_be_written(endpoint, tone, tmp_path):
    endpoint.says(chat("1. Read."))
    with refused(ParameterRefused, "output_missing"):
        command_output("geval_steps", "coherence")
    with refused(FileUnwritable):
        command_output("geval_steps", tone, "--output", tmp_path / "none" / "steps.json")
    with refused(ParameterRefused, "unknown_settings"):
        command_output("geval_steps", tmp_path / "none.json")
    (tmp_path / "broken.json").write_text('{"aspect": "Tone"')
    with refused_naming(ParameterRefused, "broken.json"):
        command_output("geval_steps", tmp_path / "broken.json")
    assert endpoint.bodies == []
    command_output("geval_steps", "coherence", "--output", tmp_path / "coherence.json")
    written = geval.GEvalSettings.from_json((tmp_path / "coherence.json").read_text())
    assert (written.aspect, written.steps) == ("Coherence", "1. Read.")


def test_a_study_keeps_each_version_and_is_scored_by_the_newest_or_the_one_named(study, tone):
    keep = ("keep_judge", "ratings", "tone", tone)
    assert "settings=tone@1 " in command_output(*keep)
    tone.write_text(json.dumps(json.loads(TONE.to_json()) | {"criteria": "Is it warm?"}))
    assert "settings=tone@2 " in command_output(*keep)
    first, second = JudgeVersion.objects.of(study)
    assert first.content == json.loads(TONE.to_json())
    assert second.content == first.content | {"criteria": "Is it warm?"}
    assert first.fingerprint == TONE.fingerprint != second.fingerprint
    with refused(ParameterRefused, "name_unfit"):  # nobody could ask for it
        command_output("keep_judge", "ratings", "tone@2", tone)
    score_tone()
    command_output("score_study", "ratings", "--metric=geval", "--set=geval.settings=tone@1")
    signatures = ScoringRun.objects.order_by("pk").values_list("signature", flat=True)
    prints = JudgeVersion.objects.order_by("-version").values_list("fingerprint", flat=True)
    assert len(signatures) == 2
    for fingerprint, signature in zip(prints, signatures, strict=True):
        assert f"settings:{fingerprint}|" in signature
    with refused(ParameterRefused, "unknown_settings"):
        command_output("score_study", "ratings", "--metric=geval", "--set=geval.settings=tone@7")


def test_a_grade_has_settings_in_a_study_too(study, tmp_path):
    path = tmp_path / "grade.json"
    path.write_text(grade.GradeSettings(temperature=0.0).to_json())
    command_output("keep_judge", "ratings", "cold", path, "--metric=judge")
    command_output("score_study", "ratings", "--metric=judge", "--set=judge.settings=cold")
    run = ScoringRun.objects.get(metric="judge")
    assert "temperature:0|" in run.signature
    assert grade.GradeSettings(temperature=0.0).fingerprint in run.signature


def test_replies_are_kept_with_the_scores_and_the_judges_listed_with_their_runs(study, endpoint):
    score_tone()
    raw = json.loads(Score.objects.first().raw)
    assert (raw["obtained"], raw["replies"]) == ("n calls", ["2"] * 4)
    run = ScoringRun.objects.get()
    assert run.judge["settings"] == json.loads(TONE.to_json())
    assert run.judge["capabilities"]["several_replies"] is False
    assert "'2'" in dict(run.judge["capabilities"]["evidence"])["chat, n=2"]
    assert run.judge["base_url"] == endpoint.base_url
    command_output("score_study", "ratings", "--metric=rouge1")
    output = command_output("study_judges", "ratings").splitlines()
    assert output[0] == f"geval.settings=tone@1 ({TONE.fingerprint})"
    assert all(name in output[1] for name in ("geval", "foreign", "(geval|model:foreign|"))
    listed = json.loads(command_output("study_judges", "ratings", "--json"))
    assert [run["obtained"] for run in listed["runs"]] == [{"n calls": 4}]
    assert [(run["n_replies"], run["unread"]) for run in listed["runs"]] == [(16, {})]
    assert listed["settings"][0]["content"]["aspect"] == "Tone"


def test_replies_that_were_not_read_are_counted_and_shown(study, endpoint):
    says = iter(["2", "between 1 and 2", "Tone (1-3): 3", "Fine."] * 4)

    def answer(number: int, body: dict) -> Says:
        is_form = "Evaluation form" in body.get("messages", [{"content": ""}])[0]["content"]
        return chat(next(says)) if is_form else one_reply(number, body)

    endpoint.answer = answer
    message = score_tone()
    run = ScoringRun.objects.get()
    assert run.judge["n_replies"] == 16
    assert run.judge["unread"] == {"ambiguous": 4, "no_number": 4}
    assert run.unread_replies
    assert run.unread_replies in message
    assert run.unread_replies in command_output("study_judges", "ratings")
    listed = json.loads(command_output("study_judges", "ratings", "--json"))
    assert listed["runs"][0]["unread"] == run.judge["unread"]


@pytest.mark.parametrize(("answer", "calls"), [(one_reply, TONE.n), (as_many_as_requested, 1)])
def test_an_endpoint_is_probed_once_so_that_estimates_are_right(
    study, endpoint, settings, answer, calls
):
    endpoint.answer = answer
    for _ in range(2):
        assert planned()["requests"] == 4 * calls
        assert len(endpoint.bodies) == PROBES
    score_tone()
    assert len(endpoint.bodies) == PROBES + 4 * calls
    can = ScoringRun.objects.get().judge["capabilities"]
    assert can["several_replies"] is (calls == 1)
    # Of an endpoint that is not there the highest is expected.
    settings.JUDGE = {"JUDGE_MODEL": "foreign"}
    Score.objects.all().delete()
    assert planned()["requests"] == 4 * TONE.n


@pytest.mark.filterwarnings("always::metrics.scorers.errors.RepeatedSamplesWarning")
def test_samples_that_would_be_one_reply_again_and_again_are_reported(study, endpoint, capsys):
    endpoint.says(chat("2"))
    for options in (["--dry-run"], []):
        score_tone(*options)
        [warning] = capsys.readouterr().err.splitlines()
        assert re.findall(r"\d+", warning) == ["1", "4", "4"]  # temperature, samples, repetitions


def test_log_probabilities_that_an_endpoint_lacks_are_reported_before_anything_is_scored(
    study, tone
):
    tone.write_text(json.dumps(json.loads(TONE.to_json()) | {"distribution": "logprobs"}))
    command_output("keep_judge", "ratings", "tone", tone)
    for options in ([], ["--dry-run"]):
        with refused(ModelUnfit, "no_logprobs"):
            score_tone(*options)
    assert not ScoringRun.objects.exists()


def test_a_cap_stops_a_run_and_the_next_goes_on(study, endpoint):
    command_output("probe_judge")
    with refused(ModelUnfit, "requests_spent") as raised:
        score_tone("--max-requests=10")
    assert Score.objects.count() == 2
    assert len(endpoint.bodies) == PROBES + 2 * TONE.n
    run = ScoringRun.objects.get()
    assert (run.state, run.error) == ("failed", str(raised.value))
    [scored] = json.loads(score_tone("--max-requests=10", "--json"))
    assert (scored["n_scored"], scored["n_known"]) == (2, 2)
    assert (scored["n_requests"], scored["spent_usd"]) == (2 * TONE.n, "0")
    assert len(endpoint.bodies) == PROBES + 4 * TONE.n
    assert ScoringRun.objects.get().state == "done"


def test_the_probe_counts_against_the_cap_and_judges_share_it(study, endpoint):
    with refused(ModelUnfit, "requests_spent"):
        score_tone("--max-requests=10")
    assert len(endpoint.bodies) == PROBES + TONE.n
    endpoint.bodies.clear()
    with refused(ModelUnfit, "requests_spent"):
        score_tone("--metric=judge", "--max-requests=7")
    assert len(endpoint.bodies) <= 7


def test_money_is_capped_where_prices_are_known(study, endpoint, settings):
    with refused(ParameterRefused, "prices_missing"):
        score_tone("--max-usd=1")
    command_output("probe_judge")
    settings.JUDGE = settings.JUDGE | {"JUDGE_USD_PER_MILLION_INPUT": "1"}
    assert float(planned()["usd"]) > 0.0001
    with refused(ModelUnfit, "usd_spent"):
        score_tone("--max-usd=0.0001")
    with refused(ParameterRefused, "not_a_number"):
        score_tone("--max-usd=much")
    assert len(endpoint.bodies) == PROBES


def test_a_file_is_planned_without_being_scored(endpoint, write, tmp_path):
    items = write("item,system,context,response", "1,a,Hi?,Yes.", "2,a,Hi?,No.", "3,a,,None.")
    output = tmp_path / "out.csv"
    command = ("score", items, "--metric=judge", f"--output={output}", "--dry-run")
    [plan] = json.loads(command_output(*command, "--json"))
    assert (plan["metric"], plan["estimate"]["requests"]) == ("judge", 2)
    assert "judge: 3 " in command_output(*command)
    assert not output.exists()
    assert endpoint.bodies == []


def test_a_capped_file_goes_on_where_it_stopped(endpoint, write, tmp_path):
    endpoint.says(chat("80"))
    lines = (f"{number},a,Hi?,{'so ' * number}" for number in range(6))
    items = write("item,system,context,response", *lines)
    command = ("score", items, "--metric=judge", f"--output={tmp_path / 'out.csv'}")
    with refused(ModelUnfit, "requests_spent"):
        command_output(*command, "--max-requests=4")
    summary = json.loads(command_output(*command, "--max-requests=4", "--json"))
    assert [metric["n_computed"] for metric in summary["metrics"]] == [2]
    assert len(endpoint.bodies) == 6  # one each: a single reply takes no probe


@pytest.mark.parametrize("output", ["none/scores.csv", "tone.json", "."])
def test_a_file_of_scores_that_cannot_be_is_reported_before_the_endpoint_is_asked(
    endpoint, tone, write, tmp_path, output
):
    items = write("item,system,response", "q1,a,hi", name="items.csv")
    options = ("--metric=geval", f"--set=geval.settings={tone}", "--output", tmp_path / output)
    with refused(FileUnfit):
        command_output("score", items, *options)
    assert endpoint.bodies == []
