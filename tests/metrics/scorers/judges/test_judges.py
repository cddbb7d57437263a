import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from time import process_time

import pytest

from error_codes import InvalidValue
from metrics.scorers import errors, registry
from metrics.scorers.interface import Example
from metrics.scorers.judges import readings
from metrics.scorers.judges.budget import Budget, Prices
from metrics.scorers.judges.capabilities import capabilities_of, probe, stored_capabilities
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.geval import PRESETS, GEval, GEvalSettings, with_steps
from metrics.scorers.judges.grade import Grade, GradeSettings
from metrics.scorers.judges.readings import Reply, read_rating
from metrics.scorers.judges.samples import Sample, from_samples, from_tokens
from stats.correlation import correlation_at_level
from tests.codes import refused
from tests.metrics.scorers.judges.foreign import Says, chat, error

TURN = Example(item="1", system="a", context="How are you?", response="Fine, $5 {x}.")
TONE = GEvalSettings(aspect="Tone", criteria="Is it kind?", low=1, high=3, n=4)


def raw(score) -> dict:
    return json.loads(score.raw)


def top(*choices: tuple[str, float]) -> dict:
    alternatives = [{"token": token, "logprob": math.log(share)} for token, share in choices]
    return {"content": [alternatives[0] | {"top_logprobs": alternatives}]}


def n_honoured(number: int, body: dict) -> Says:
    return chat(*["3", "1", "3", "Good", "3"][: body.get("n", 1)])


def n_ignored(number: int, body: dict) -> Says:
    return chat(["3", "1", "3", "Good", "3"][number])


def n_refused(number: int, body: dict) -> Says:
    return error(400, "n must be 1") if body.get("n", 1) > 1 else chat("2")


def test_a_grade_is_asked_for_with_the_published_prompt(foreign):
    foreign.says(chat("Appropriateness Score: [85]"))
    (scores,) = Grade(client=foreign.client()).score([TURN])
    assert scores["judge"].value == 85
    settings = GradeSettings()
    assert settings.fingerprint == "434a9041a42d"  # of the published texts
    asked = settings.user.replace("$context", TURN.context).replace("$response", TURN.response)
    assert foreign.bodies[0]["messages"] == [
        {"role": "system", "content": settings.system},
        {"role": "user", "content": asked},
    ]
    assert foreign.bodies[0]["temperature"] == 0.6


def test_a_reply_without_a_grade_is_nan_and_kept_verbatim(foreign):
    foreign.says(chat("  Lovely!\n"))
    (scores,) = Grade(client=foreign.client()).score([TURN])
    assert math.isnan(scores["judge"].value)
    assert scores["judge"].reason.code == "no_number"
    assert raw(scores["judge"])["replies"] == ["  Lovely!\n"]
    # LMStyle's released reading is another metric.
    released = Grade(GradeSettings(lmstyle_released=True), client=foreign.client())
    assert released.score([TURN])[0]["judge"].value == 50
    assert released.signature != Grade(client=foreign.client()).signature


def test_texts_without_a_context_or_refused_are_nan_and_the_others_are_scored(foreign):
    foreign.answer = lambda number, body: (
        error(400, "E17") if "long" in body["messages"][1]["content"] else chat("70")
    )
    gap = Example(item="2", system="a", response="Fine.")
    long = Example(item="2", system="a", context="long", response="Fine.")
    scores = [one["judge"] for one in Grade(client=foreign.client()).score([gap, TURN, long, TURN])]
    assert [score.value for score in scores][1::2] == [70, 70]
    assert [scores[0].reason.code, scores[2].reason.code] == ["missing_field", "prompt_refused"]
    assert "E17" in scores[2].reason
    assert len(foreign.bodies) == 3


@pytest.mark.parametrize(
    ("behaviour", "obtained", "requests", "value"),
    [(n_honoured, "n", 1, 7 / 3), (n_ignored, "n calls", 4, 7 / 3), (n_refused, "n calls", 5, 2.0)],
)
def test_n_samples_are_had_whatever_the_endpoint_makes_of_n(
    foreign, behaviour, obtained, requests, value
):
    foreign.answer = behaviour
    (scores,) = GEval(TONE, client=foreign.client()).score([TURN])
    assert scores["geval"].value == pytest.approx(value)
    assert len(foreign.bodies) == requests
    record = raw(scores["geval"])
    assert record["obtained"] == obtained
    assert len(record["replies"]) == 4


def test_samples_that_cannot_be_read_are_left_out_and_kept(foreign):
    foreign.answer = n_honoured
    (scores,) = GEval(TONE, client=foreign.client()).score([TURN])
    record = raw(scores["geval"])
    assert record["replies"] == ["3", "1", "3", "Good"]
    assert record["probabilities"] == {"1": pytest.approx(1 / 3), "3": pytest.approx(2 / 3)}
    assert record["mass"] == 0.75
    assert record["unread"] == {"no_number": 1}
    foreign.says(chat("Good", "Fair", "4", ""))
    (scores,) = GEval(TONE, client=foreign.client()).score([TURN])
    assert scores["geval"].reason.code == "no_rating"
    assert raw(scores["geval"])["replies"] == ["Good", "Fair", "4", ""]
    assert raw(scores["geval"])["unread"] == {"no_number": 3, "off_scale": 1}


def test_ambiguous_replies_are_counted_and_no_number_of_the_scale_is_a_score(foreign):
    foreign.says(chat("Tone (1-3): 2", "between 2 and 3", "Tone (1-3):", "**Tone (1-3):** 3"))
    (scores,) = GEval(TONE, client=foreign.client()).score([TURN])
    assert scores["geval"].value == 2.5
    assert raw(scores["geval"])["unread"] == {"ambiguous": 1, "no_score": 1}
    foreign.says(chat("On a scale of 0-100, I would give 80 or 90."))
    (scores,) = Grade(client=foreign.client()).score([TURN])
    assert scores["judge"].reason.code == "ambiguous"
    assert raw(scores["judge"])["unread"] == {"ambiguous": 1}


def test_a_grade_is_of_the_quality_that_the_prompt_ends_with():
    ends = {"\nPoliteness rating:": "Politeness", "\n- Tone:": "Tone", "": ""}
    for end, quality in ends.items():
        assert GradeSettings(user=f"$response{end}").quality == quality
    assert GradeSettings(user="Grade: $response").quality == ""


def test_an_endpoint_that_ignores_n_is_asked_for_n_once_and_with_different_seeds(foreign):
    foreign.says(chat("2"))
    GEval(TONE, client=foreign.client(concurrency=1)).score([TURN, TURN])
    assert [body.get("n") for body in foreign.bodies] == [4, *[None] * 7]
    foreign.bodies.clear()
    GEval(replace(TONE, n=3, seed=7), client=foreign.client()).score([TURN])
    assert [body["seed"] for body in foreign.bodies] == [7, 8, 9]
    judge = GEval(TONE, client=foreign.client(), honours_n=False)
    assert judge.estimate([TURN] * 2).requests == 8


def test_log_probabilities_weigh_the_levels_of_one_reply(foreign):
    foreign.says(
        chat("3", logprobs=top(("3", 0.4), (" 3", 0.1), ("1", 0.3), ("Good", 0.1))),
        chat("3", logprobs=top(("3", 0.1), ("Good", 0.9))),
        chat("3"),
    )
    settings = replace(TONE, n=20, distribution="logprobs", least_mass=0.5)
    judge = GEval(settings, client=foreign.client())
    (scores,) = judge.score([TURN])
    assert scores["geval"].value == pytest.approx((3 * 0.5 + 1 * 0.3) / 0.8)
    record = raw(scores["geval"])
    assert (record["obtained"], record["mass"]) == ("top_logprobs", pytest.approx(0.8))
    assert foreign.bodies[0]["top_logprobs"] == 20
    assert "distribution:logprobs" in judge.signature
    (scores,) = judge.score([TURN])
    assert scores["geval"].reason.code == "too_little_mass"
    with refused(errors.EndpointRefusedError, "no_logprobs"):
        judge.score([TURN])


def test_steps_are_written_once_and_used_from_the_settings(foreign, tmp_path):
    foreign.says(chat("\n1. Read.\n2. Rate. $"), chat("2", "2", "2", "2"))
    client = foreign.client()
    settings = with_steps(TONE, client)
    assert (settings.steps, settings.steps_model) == ("1. Read.\n2. Rate. $", "foreign-1")
    path = tmp_path / "tone.json"
    path.write_text(settings.to_json())
    again = GEval(str(path), client=client)
    assert again.signature == GEval(settings, client=client).signature
    assert again.signature != GEval(TONE, client=client).signature
    again.score([TURN, TURN])
    instructions, *forms = [body["messages"][0]["content"] for body in foreign.bodies]
    assert all(str(part) in instructions for part in (TONE.aspect, TONE.criteria, 1, 3))
    assert len(forms) == 2
    assert all("1. Read.\n2. Rate. $\n" in form for form in forms)


def test_a_whole_dialogue_needs_no_context_and_shows_both(foreign):
    foreign.says(chat(*["4"] * 20))
    judge = GEval("dialogue", client=foreign.client())
    dialogue = Example(item="1", system="a", response="A: Hi.\nB: Hello.")
    assert [score["geval"].value for score in judge.score([dialogue, TURN])] == [4, 4]
    forms = " ".join(body["messages"][0]["content"] for body in foreign.bodies)
    assert f"{TURN.context}\n{TURN.response}" in forms
    assert dialogue.response in forms
    foreign.says(chat(*["0"] * 15, *["1"] * 5))
    (scores,) = GEval("groundedness", client=foreign.client()).score([TURN])
    assert scores["geval"].value == 0.25  # its scale has a zero


def test_the_cost_is_estimated_before_and_the_cap_is_kept(foreign):
    foreign.says(chat("80"))
    budget = Budget(max_requests=10, prices=Prices(Decimal(1), Decimal(2)))
    judge = Grade(client=foreign.client(budget=budget))
    estimate = judge.estimate([TURN] * 20)
    assert (estimate.requests, estimate.completion_tokens) == (20, 20 * 64)
    assert estimate.usd == Decimal(estimate.prompt_tokens + 2 * 20 * 64) / 1_000_000
    assert foreign.bodies == []
    assert [scores["judge"].value for scores in judge.score([TURN] * 8)] == [80] * 8
    with refused(errors.BudgetSpentError, "requests_spent"):
        judge.score([TURN] * 8)
    assert len(foreign.bodies) == 8


def test_a_failing_endpoint_stops_the_batch_and_blank_steps_or_no_endpoint_are_refused(foreign):
    foreign.says(error(401))
    with refused(errors.EndpointRefusedError, "status_401"):
        Grade(client=foreign.client(concurrency=1)).score([TURN] * 8)
    assert len(foreign.bodies) < 8
    foreign.says(chat("  "))
    with refused(errors.EndpointRefusedError, "no_steps"):
        with_steps(TONE, foreign.client())
    with refused(errors.EndpointRefusedError, "no_endpoint"):
        registry.build("judge").score([TURN])


def full(number: int, body: dict) -> Says:
    if "prompt" in body:
        logprobs = [None, -1, -2, -3]
        tokens = {"tokens": ["one", " two", " three", "!"], "token_logprobs": logprobs}
        return Says({"choices": [{"text": "one two three!", "logprobs": tokens}]})
    return chat(*["3"] * body.get("n", 1), logprobs=top(("3", 0.5), ("1", 0.3), ("2", 0.1)))


def poor(number: int, body: dict) -> Says:
    if "prompt" in body:
        return error(404, "no such path")
    return error(400, "E17") if {"n", "logprobs"} & body.keys() else chat("3")


@pytest.mark.parametrize(
    ("answer", "found", "evidence"),
    [(full, (True, 3, True), "'3'"), (poor, (False, 0, False), "E17")],
)
def test_an_endpoint_is_probed_for_what_it_can_do(foreign, answer, found, evidence):
    foreign.answer = answer
    seen = probe(foreign.client())
    assert (seen.several_replies, seen.top_logprobs, seen.echoed_logprobs) == found
    assert seen.distribution == ("logprobs" if found[0] else "samples")
    assert evidence in dict(seen.evidence)["chat, n=2"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"low": 3}, "high_out_of_range"),
        ({"form": "$answer"}, "unknown_field"),
        ({"form": "costs $ 5"}, "stray_dollar"),
        ({"n": 0}, "n_out_of_range"),
        ({"temperature": 3.0}, "temperature_out_of_range"),
        ({"high": 100, "distribution": "logprobs"}, "levels_of_two_digits"),
        ({"unit": "turn"}, "unknown_unit"),
        ({"least_mass": 2.0}, "least_mass_out_of_range"),
    ],
)
def test_settings_out_of_range_are_refused_when_they_are_made(changed, code):
    with refused(InvalidValue, code):
        GEvalSettings(**{"aspect": "Tone", "criteria": "Kind?", "low": 1, "high": 3, **changed})


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"aspect": 5}, "wrong_kind"),
        ({"released": 1}, "wrong_kind"),
        ({"unit": 1}, "wrong_kind"),
        ({"steps": "\x00"}, "unstorable_text"),
        ({"criteria": "\ud800"}, "unstorable_text"),
    ],
)
def test_settings_of_another_kind_are_refused_when_they_are_read(changed, code):
    with refused(InvalidValue, code) as raised:
        GEvalSettings.from_json(json.dumps(json.loads(TONE.to_json()) | changed))
    assert str(raised.value).startswith(*changed)


def test_settings_survive_json_and_what_are_none_is_refused():
    for kept in [*PRESETS.values(), TONE]:
        assert GEvalSettings.from_json(kept.to_json()) == kept
    for text in ("[1]", "[" * 100_000, "{", '{"aspect": "Tone"}'):
        with pytest.raises((InvalidValue, json.JSONDecodeError)):
            GEvalSettings.from_json(text)


def test_the_registry_takes_a_preset_or_a_file_of_settings(tmp_path):
    assert "aspect:Groundedness" in registry.build("geval", settings="groundedness").signature
    path = tmp_path / "grade.json"
    path.write_text(GradeSettings(temperature=0.0).to_json())
    assert "temperature:0|" in registry.build("judge", settings=str(path)).signature
    with refused(InvalidValue, "unknown_settings"):
        registry.build("geval", settings="no such thing")
    path.write_text('{"colour": 1}')
    with refused(InvalidValue, "settings_unfit"):
        registry.build("judge", settings=str(path))
    path.write_text(TONE.to_json(), encoding="utf-8-sig")  # with a byte order mark
    assert GEvalSettings.from_file(str(path)) == TONE


# The stored samples of "A Closer Look", beside people.
PUBLISHED = {
    "naturalness": (0.393, 0.358),
    "coherence": (0.468, 0.391),
    "engagingness": (0.549, 0.513),
    "groundedness": (0.311, 0.566),
}
SCALES = {aspect: (0, 1) if aspect == "groundedness" else (1, 3) for aspect in PUBLISHED}
OFFLINE = Client(Endpoint(base_url="", model="gpt-3.5-turbo-0613"))


@pytest.fixture
def topical_chat(shared_data: Path) -> Path:
    return shared_data / "topical_chat_usr"


def samples(folder: Path, aspect: str) -> dict[int, Sample]:
    with (folder / "geval_gpt35_n20.jsonl").open() as lines:
        rows = [json.loads(line) for line in lines]
    return {
        row["item_id"]: Sample(tuple(Reply(text) for text in row["raw"]), 1, "gpt-3.5-turbo-0613")
        for row in rows
        if (row["mode"], row["dim"]) == ("geval", aspect)
    }


@pytest.mark.shared_data
@pytest.mark.parametrize("aspect", PUBLISHED)
def test_the_published_correlations_come_out_of_the_stored_replies(topical_chat, aspect):
    low, high = SCALES[aspect]
    settings = GEvalSettings(aspect=aspect, criteria="", low=low, high=high, n=20, released=True)
    scorer = GEval(settings, client=OFFLINE)
    drawn = samples(topical_chat, aspect)
    assert len(drawn) > 350
    assert {len(sample.replies) for sample in drawn.values()} == {20}
    rows = json.loads((topical_chat / "topical_chat_usr.json").read_text())
    items = {item["item_id"]: item for item in rows}
    human = [items[key]["scores"][aspect] for key in drawn]
    metric = [scorer.read(sample).value for sample in drawn.values()]
    dialogues = [items[key]["dialog_id"] for key in drawn]
    pooled = correlation_at_level(
        human, metric, level="pooled", coefficient="pearson", items=dialogues, n_resamples=2
    )
    tau = correlation_at_level(
        human, metric, level="item", coefficient="kendall", items=dialogues, n_resamples=2
    )
    assert (pooled.value, tau.value) == pytest.approx(PUBLISHED[aspect], abs=0.0006)


@pytest.mark.shared_data
def test_long_answers_are_read_as_their_authors_read_them_but_for_those_without_a_number(
    topical_chat,
):
    with (topical_chat / "geval_gpt35_long_samples.jsonl").open() as lines:
        rows = [json.loads(line) for line in lines]
    pairs = [
        (read_rating(text, row["dim"], *SCALES[row["dim"]]).value, theirs)
        for row in rows
        for text, theirs in zip(row["raw"], row["parsed"], strict=True)
    ]
    assert len(pairs) > 800
    assert all(math.floor(ours) == theirs for ours, theirs in pairs if not math.isnan(ours))
    assert [theirs for ours, theirs in pairs if math.isnan(ours)] == [0, 0]


CORPUS = [
    json.loads(line)
    for line in (Path(__file__).parent / "replies.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Shapes of replies: what is asked for, the scale, and the value or the code of the reason."""


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in CORPUS}))
def test_a_reply_is_its_score_or_a_reason(kind):
    wrong = []
    for row in (row for row in CORPUS if row["kind"] == kind):
        reply, label, scale = row["reply"], row["label"], (row["low"], row["high"])
        reading = readings.read_rating(reply, label, *scale)
        found = reading.value if reading.reason is None else reading.reason.code
        assert math.isnan(reading.value) == (reading.reason is not None)
        if found != row["expected"]:
            wrong.append((reply, row["expected"], found))
    assert wrong == []


@pytest.mark.parametrize(
    "reply",
    [
        "Score:" + " " * 50_000 + "x", "1 " * 10_000, "1" * 20_000, "(" * 20_000, "1-1" * 7_000,
        "scale " + "a" * 20_000, "1. a " * 4_000, "<think>" * 3_000, '"' * 20_000, "4 of " * 4_000,
    ],
    ids=lambda reply: reply[:12],
)  # fmt: skip
def test_a_long_reply_takes_no_long_time(reply):
    started = process_time()
    readings.read_rating(reply, "coherence", 1, 5)
    assert process_time() - started < 3


def test_of_a_long_reply_the_end_is_read():
    assert readings.read_rating("x" * 30_000 + "\nRating: 4", "tone", 1, 5) == (4, None)


def test_released_readings_are_the_first_digits_or_a_default():
    assert readings.read_grade_as_released("Quite good.").value == 50
    assert readings.read_grade_as_released("150").value == 150
    replies = ["2.5", "Fact: 84 per cent", "N/A", "1. Coherence: 3"]
    assert [readings.read_rating_as_released(reply).value for reply in replies] == [2, 8, 0, 1]


def test_distributions_are_of_samples_that_were_read():
    means = {
        from_samples([1.0] * ones + [2.0] * twos + [3.0] * (20 - ones - twos)).expectation
        for ones in range(21)
        for twos in range(21 - ones)
        if ones + 2 * twos + 3 * (20 - ones - twos) == 38
    }
    assert means == {1.9}
    assert from_samples([3.0, math.nan]).expectation == 3
    assert from_samples([3.0, math.nan]).mass == 0.5
    assert math.isnan(from_samples([math.nan]).expectation)


def token(text: str, *alternatives: tuple[str, float]) -> readings.Token:
    return readings.Token(
        text, math.log(0.5), tuple((name, math.log(p)) for name, p in alternatives)
    )


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["Tone", " (", "1", "-", "5", "):", " 4"], 4),
        (["On", " a scale of ", "1", " to ", "5", ", I rate it ", "2", "."], 2),
        (["Based on the ", "4", " criteria, ", "2"], 2),
        (["<think>", "3", "?</think>", "4"], 4),
        (["4", "/", "5"], 4),
        (["Tone (", "1", "-", "5", "):"], None),
        (["between ", "3", " and ", "4"], None),
        (["2", ".", "5"], None),
        (["7"], None),
    ],
)
def test_the_token_of_the_score_is_no_number_of_the_scale_or_an_explanation(texts, expected):
    tokens = [token(text, (text, 1.0)) for text in texts]
    found = from_tokens(tokens, range(1, 6), "tone")
    assert list(found.weights) == ([] if expected is None else [expected])


def test_distributions_of_tokens_are_of_the_first_level_chosen():
    tokens = [token("Score", ("2", 0.2)), token(":"), token(" 2", (" 2", 0.5), ("3", 0.5))]
    assert from_tokens(tokens, range(1, 4)).expectation == pytest.approx(2.5)
    assert from_tokens([token("Good", ("2", 0.4))], range(1, 4)) == ({}, 0.0)
    assert from_tokens([token("1", ("3", 0.5))], range(1, 4)).expectation == pytest.approx(2)
    with refused(InvalidValue, "values_empty"):
        from_samples([])
    with refused(InvalidValue, "levels_of_two_digits"):
        from_tokens([], range(11))


PROBES = 6


def test_an_endpoint_is_probed_once_for_each_model_or_anew_and_its_key_not_stored(
    foreign, tmp_path
):
    foreign.says(chat("2"))
    seen = capabilities_of(foreign.client(api_key="sesame"), tmp_path)
    [file] = tmp_path.iterdir()
    assert foreign.headers[0]["Authorization"] == "Bearer sesame"
    assert "sesame" not in file.read_text()
    assert capabilities_of(foreign.client(), tmp_path) == seen
    assert len(foreign.bodies) == PROBES
    assert stored_capabilities(Endpoint(base_url=foreign.base_url, model="other"), tmp_path) is None
    foreign.says(chat("2", "3"))
    assert capabilities_of(foreign.client(), tmp_path, anew=True).several_replies
    assert capabilities_of(foreign.client(), tmp_path).several_replies


def test_findings_that_cannot_be_read_or_written_are_none(foreign, tmp_path):
    foreign.says(chat("2"))
    capabilities_of(foreign.client(), tmp_path)
    [file] = tmp_path.iterdir()
    file.write_text('{"asked_model": "foreign"')
    capabilities_of(foreign.client(), tmp_path)
    assert len(foreign.bodies) == 2 * PROBES
    for _ in range(2):
        assert not capabilities_of(foreign.client(), file).several_replies
    assert len(foreign.bodies) == 4 * PROBES
