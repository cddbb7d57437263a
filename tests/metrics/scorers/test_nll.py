import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from error_codes import InvalidValue
from metrics.scorers import errors
from metrics.scorers.interface import Example
from metrics.scorers.nll import CompletionsServer, Nll, response_likelihood, system_score
from tests.codes import refused
from tests.metrics.scorers.completions import TOO_LONG, Completions
from tests.metrics.scorers.conftest import HOSTILE, cut_to, example
from tests.metrics.scorers.judges.foreign import Says

TEMPLATES = ["lmstyle-paper", "lmstyle-code", "context", "Q: {context}\nIn a {condition} way:"]
RESPONSES = [
    " I'm sorry to hear that.",
    "I'm sorry to hear that.",
    " Good day! How may I help you?",
    *(text for text in HOSTILE if text.strip() and len(text) < 100),
    " Hey " * 40,
]
CONTEXTS = ("Hi.", "I took the train to work the other day.")
EXAMPLES = [
    example(response, None, context=CONTEXTS[index % 2], condition="Formal")
    for index, response in enumerate(RESPONSES)
]


@pytest.fixture(params=["tiny_llama", "tiny_bloom"])
def folder(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


@cache
def plain_model(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(folder), model


def plain_nats(folder: Path, prompt: str, response: str, boundary: str, bos: bool) -> float:
    """One text, unpadded, as the loss of transformers itself: the mean over labels."""
    import torch

    tokenizer, model = plain_model(folder)
    before = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    if boundary == "separate":
        ids = before + tokenizer(response, add_special_tokens=False)["input_ids"]
    else:
        ids = tokenizer(prompt + response, add_special_tokens=False)["input_ids"]
        lengths = [k for k in range(len(ids)) if prompt.startswith(tokenizer.decode(ids[:k]))]
        before = ids[: max(lengths)]
    begin = [tokenizer.bos_token_id] if bos else []
    labels = [-100] * len(begin + before) + ids[len(before) :]
    with torch.no_grad():
        loss = model(torch.tensor([begin + ids]), labels=torch.tensor([labels])).loss
    return float(loss)


def nats(scorer: Nll, examples: list[Example]) -> list[float]:
    return [scores["nll"].value for scores in scorer.score(examples)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "padding", "boundary", "bos"),
    [
        (TEMPLATES[0], "right", "separate", False),
        (TEMPLATES[1], "left", "separate", False),
        (TEMPLATES[2], "right", "joint", False),
        (TEMPLATES[3], "left", "joint", False),
        (TEMPLATES[2], "left", "separate", True),
        (TEMPLATES[3], "right", "separate", True),
    ],
)
def test_in_batches_it_equals_the_loss_of_each_text_alone(folder, template, padding, boundary, bos):
    scorer = Nll(model=folder, template=template, padding=padding, boundary=boundary, bos=bos)
    expected = [
        plain_nats(folder, scorer.prompt(one), one.response, boundary, bos) for one in EXAMPLES
    ]
    assert nats(scorer, EXAMPLES) == pytest.approx(expected, abs=1e-5)


def test_the_score_is_a_hundred_over_the_loss_and_a_systems_over_its_mean(tiny_llama):
    scorer = Nll(model=tiny_llama)
    (scores,) = scorer.score(EXAMPLES[:1])
    assert scores["nll_score"].value == pytest.approx(100 / scores["nll"].value)
    assert not scorer.higher_is_better_for("nll")
    assert scorer.higher_is_better_for("nll_score")
    assert system_score([2.0, 100.0]) == pytest.approx(100 / 51)
    assert math.isnan(system_score([]))
    assert math.isnan(system_score([2.0, math.nan]))


def test_the_templates_of_paper_and_code_differ_by_the_style():
    one = example(" Hello.", None, context="Good {day}.", condition="Formal")
    paper, code = Nll(), Nll(template="lmstyle-code")
    parts = ["###Speaker:", one.context, "###Response:"]
    assert paper.prompt(one) == " ".join(parts)
    assert code.prompt(one) == " ".join([*parts[:2], f"###{one.condition}", "Response:"])
    assert paper.needs == {"context"}
    assert code.needs == {"context", "condition"}


def test_the_leading_space_of_a_response_counts_unless_it_is_set(tiny_llama):
    spaced, bare = EXAMPLES[:2]
    bare = example(bare.response, None, context=spaced.context)
    verbatim = nats(Nll(model=tiny_llama), [spaced, bare])
    assert abs(verbatim[0] - verbatim[1]) > 1e-3
    led = nats(Nll(model=tiny_llama, lead="space"), [spaced, bare])
    assert led == pytest.approx([verbatim[0]] * 2)


def test_an_empty_response_counts_a_hundred_nats_or_is_undefined(tiny_llama):
    empty = [example(response, None, context="Hi.") for response in ("", " \n")]
    for scores in Nll(model=tiny_llama).score(empty):
        assert (scores["nll"].value, scores["nll_score"].value) == (100, 0)
    for scores in Nll(model=tiny_llama, empty="undefined").score(empty):
        assert math.isnan(scores["nll"].value)
        assert scores["nll_score"].reason.code == "empty"


def windowed_nats(folder: Path, ids: list[int], start: int, window: int) -> float:
    """Each token of the response alone, after as much of the text as its window shows."""
    import torch

    _, model = plain_model(folder)
    losses = []
    for target in range(start, len(ids)):
        end = min(len(ids), start + (target - start) // (window // 2) * (window // 2) + window // 2)
        seen = ids[max(0, end - window) : target]
        with torch.no_grad():
            logits = model(torch.tensor([seen])).logits[0, -1].log_softmax(-1)
        losses.append(-float(logits[ids[target]]))
    return sum(losses) / len(losses)


def test_a_text_longer_than_the_window_is_read_in_overlapping_windows(folder):
    long = example(" Hey, what's up? " * 5, None, context="I took the train to work. " * 9)
    scorer = Nll(model=folder, window=32)
    tokenizer, _ = plain_model(folder)
    before = tokenizer(scorer.prompt(long))["input_ids"]
    ids = before + tokenizer(long.response)["input_ids"]
    assert len(ids) - len(before) > 32
    with pytest.warns(errors.TruncatedTextWarning) as caught:
        values = nats(scorer, [long, example(" So.", None, context="Hi.")])
    assert cut_to(caught) == [1, 2, 32]
    assert values[0] == pytest.approx(windowed_nats(folder, ids, len(before), 32), abs=1e-5)


def test_the_window_and_the_numeric_type_are_as_set(tiny_llama):
    long = example(" Hey" * 300, None, context="Hi.")
    with pytest.warns(errors.TruncatedTextWarning) as caught:
        assert nats(Nll(model=tiny_llama), [long])[0] > 0
    assert cut_to(caught) == [1, 1, 256]
    (scores, short) = Nll(model=tiny_llama, overflow="undefined").score([long, EXAMPLES[0]])
    assert math.isnan(scores["nll"].value)
    assert "256" in scores["nll"].reason
    assert short["nll"].value > 0
    exact, rounded = Nll(model=tiny_llama), Nll(model=tiny_llama, dtype="bfloat16")
    assert nats(rounded, EXAMPLES[:3]) == pytest.approx(nats(exact, EXAMPLES[:3]), rel=0.1)
    assert "|dtype:bfloat16|" in rounded.signature


def test_the_signature_says_what_changes_the_numbers_and_only_that(tiny_llama, tiny_bloom):
    plain = Nll(model=tiny_llama).signature
    assert "template:lmstyle-paper|lead:verbatim|empty:lmstyle|boundary:separate" in plain
    assert "|model:tiny-llama|weights:" in plain
    others = {"boundary": "joint", "bos": True, "lead": "space", "empty": "undefined"}
    others |= {"overflow": "undefined", "window": 32, "model": tiny_bloom}
    changed = [{name: value} for name, value in others.items()]
    changed += [{"template": text} for text in ("lmstyle-code", "{context}", "{context} ")]
    signatures = {Nll(**({"model": tiny_llama} | change)).signature for change in changed}
    assert len(signatures | {plain}) == len(changed) + 1
    assert Nll(model=tiny_llama, padding="left", device="cpu").signature == plain
    signature = served("http://somewhere:1/v1").signature
    assert "|boundary:joint|through:server|model:tiny|" in signature
    assert "somewhere" not in signature
    assert "secret" not in signature


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"template": "no field"}, "unknown_template"),
        ({"template": "{context} {reference}"}, "unknown_template"),
        ({"lead": "tab"}, "unknown_lead"),
        ({"empty": "0"}, "unknown_empty"),
        ({"boundary": "none"}, "unknown_boundary"),
        ({"padding": "both"}, "unknown_padding"),
        ({"dtype": "int8"}, "unknown_dtype"),
        ({"overflow": "cut"}, "unknown_overflow"),
        ({"window": 1}, "window_out_of_range"),
        ({"endpoint": "localhost:8000"}, "endpoint_scheme"),
        ({"endpoint": "http://localhost", "boundary": "separate"}, "boundary_not_joint"),
    ],
)
def test_a_parameter_out_of_range_is_named(parameters, code):
    with refused(InvalidValue, code):
        Nll(**parameters)


def test_a_model_that_is_not_here_or_no_language_model_is_refused(tmp_path, bag_of_words):
    with refused(errors.ModelUnavailableError, "absent") as raised:
        Nll(cache_folder=str(tmp_path)).score(EXAMPLES[:1])
    assert "bigscience/bloom-7b1" in str(raised.value)
    with refused(errors.ModelUnavailableError, "unloadable"):
        Nll(model=bag_of_words).score(EXAMPLES[:1])


WITHOUT_OFFSETS = {"tokens": ["Hi.", " Yes."], "token_logprobs": [None, -1.0]}
SERVED = [
    example(response, None, context="I took the train to work. 😀")
    for response in (" I'm sorry to hear that.", "Привет!", "😀 ok", "", " Good day, " * 9)
]


@pytest.fixture(scope="module")
def completions(tiny_llama: Path) -> Completions:
    return Completions(tiny_llama, longest=400)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFEREE_KEY", "secret")


def served(url: str) -> Nll:
    return Nll(model="tiny", endpoint=url, api_key_variable="REFEREE_KEY")


def test_through_a_server_it_equals_the_model_itself(completions, tiny_llama, foreign):
    here = Nll(model=tiny_llama, boundary="joint").score(SERVED)
    there = served(completions.serve(foreign)).score(SERVED)
    values = [scores["nll"].value for scores in there]
    assert values == pytest.approx([scores["nll"].value for scores in here], abs=1e-5)
    assert there[3]["nll_score"].value == 0
    # A text that the server turns away is undefined, and the others are scored.
    long, short = served(foreign.base_url).score(
        [example("so " * 200, None, context="Hi."), SERVED[0]]
    )
    assert math.isnan(long["nll"].value)
    assert TOO_LONG in long["nll"].reason
    assert short["nll"].value > 0


def test_a_server_without_echo_offsets_or_the_key_is_refused(completions, foreign, monkeypatch):
    with refused(errors.EndpointRefusedError, "no_echo"):
        served(completions.serve(foreign, echoes=False)).score(SERVED[:1])
    monkeypatch.setenv("REFEREE_KEY", "other")
    with refused(errors.EndpointRefusedError, "status_401"):
        served(completions.serve(foreign)).score(SERVED[:1])
    foreign.says(Says({"choices": [{"text": "Hi. Yes.", "logprobs": WITHOUT_OFFSETS}]}))
    with refused(errors.EndpointRefusedError, "no_offsets"):
        CompletionsServer(foreign.client()).likelihoods([("Hi.", " Yes.")])


def test_tokens_across_the_boundary_and_all_of_one_character_count_for_the_response():
    assert response_likelihood([0, 3, 6], [None, -1.0, -2.0], begin=4, end=8).n_tokens == 2
    assert response_likelihood([0, 3, 6], [None, -1.0, -2.0], begin=6, end=8).n_tokens == 1
    assert response_likelihood([0, 4, 4, 4], [None, -1, -1, -1], begin=4, end=5).nats == 3
    # A response that begins with the first token has no likelihood.
    assert response_likelihood([0], [None], begin=0, end=3).problem.code == "no_logprob"
