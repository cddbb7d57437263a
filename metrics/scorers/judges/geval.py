"""G-Eval: a form filled in many times, or once with its probabilities, and the mean of that."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Literal

from error_codes import CodedText, InvalidValue
from metrics.scorers.errors import EndpointRefusedError
from metrics.scorers.interface import Example, Score, sign
from metrics.scorers.judges.client import Client, Messages
from metrics.scorers.judges.grade import EndpointJudge
from metrics.scorers.judges.readings import (
    Reading,
    count_unread,
    read_rating,
    read_rating_as_released,
)
from metrics.scorers.judges.samples import Distribution, Sample, Sampling, from_samples, from_tokens
from metrics.scorers.judges.settings import (
    EXAMPLE_FIELDS,
    NEEDED_FIELDS,
    JudgeSettings,
    chat,
    check_template,
    digest,
    fill,
)

ASPECT_FIELDS = frozenset({"aspect", "criteria", "low", "high"})


FORM_FIELDS = EXAMPLE_FIELDS | ASPECT_FIELDS | {"steps"}


STEPS = """\
You will write instructions for people who rate $subject.

Evaluation criteria:
$aspect ($low-$high): $criteria

Write the evaluation steps for rating $aspect from $low to $high: a short numbered list and
nothing else.

Evaluation steps:"""


RESPONSE_FORM = """\
You will be given a conversation and one response that could come next in it. Rate the response
on one aspect.

Evaluation criteria:
$aspect ($low-$high): $criteria

Evaluation steps:
$steps

Conversation:
$context

Response:
$response

Evaluation form (one number from $low to $high and nothing else):
- $aspect:"""


DIALOGUE_FORM = """\
You will be given a whole conversation. Rate it on one aspect.

Evaluation criteria:
$aspect ($low-$high): $criteria

Evaluation steps:
$steps

Conversation:
$dialogue

Evaluation form (one number from $low to $high and nothing else):
- $aspect:"""


FORMS = {"response": RESPONSE_FORM, "dialogue": DIALOGUE_FORM}


SUBJECTS = {"response": "responses in a conversation", "dialogue": "whole conversations"}


NO_STEPS = "Read carefully, then rate."


@dataclass(frozen=True, slots=True, kw_only=True)
class GEvalSettings(JudgeSettings):
    """A version of one question put to a judge.

    Attributes
    ----------
    aspect, criteria : str
        What is rated, and what makes it good.
    low, high : int
        The ends of the scale; ``low`` may be 0.
    unit : str
        ``"response"``: one response after its context. ``"dialogue"``: the whole of both.
    steps : str
        How to rate, as `with_steps` had a model write it, or anyone; ``""`` is none.
    steps_model : str
        Which model wrote the steps.
    form, steps_prompt : str
        Templates; ``form`` is the unit's own where blank.
    distribution : str
        ``"samples"``: the shares of n replies. ``"logprobs"``: the probabilities of the token
        that is the score, where the endpoint gives them.
    n : int
        Replies, for ``"samples"``.
    temperature, top_p, max_tokens, seed
        As for `Sampling`.
    top_logprobs : int
        Alternatives, for ``"logprobs"``; endpoints may give fewer.
    least_mass : float
        The score is NaN where the levels of the scale hold less of the probability, or of the
        samples: a distribution over little is the distribution of something else.
    released : bool
        Read replies as the pipeline of "A Closer Look" does: the first digit, 0 without one,
        whatever the scale. Only for replication.

    Raises
    ------
    ValueError
        If a template is malformed, the scale is empty, or a number is out of range.

    Examples
    --------
    >>> settings = GEvalSettings(aspect="Tone", criteria="Is it kind?", low=0, high=1)
    >>> GEvalSettings.from_json(settings.to_json()) == settings
    True
    """

    aspect: str
    criteria: str
    low: int
    high: int
    unit: Literal["response", "dialogue"] = "response"
    steps: str = ""
    steps_model: str = ""
    form: str = ""
    steps_prompt: str = STEPS
    distribution: Literal["samples", "logprobs"] = "samples"
    n: int = 20
    temperature: float = 1.0
    top_p: float | None = None
    max_tokens: int = 16
    seed: int | None = None
    top_logprobs: int = 20
    least_mass: float = 0.0
    released: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InvalidValue(
                f"high must be over low, got {self.low} and {self.high}", code="high_out_of_range"
            )
        if self.unit not in FORMS:
            raise InvalidValue(
                f"unit must be response or dialogue, got {self.unit!r}", code="unknown_unit"
            )
        if self.distribution not in {"samples", "logprobs"}:
            raise InvalidValue(
                f"distribution must be samples or logprobs, got {self.distribution!r}",
                code="unknown_distribution",
            )
        if self.distribution == "logprobs" and not 0 <= self.low < self.high <= 9:
            raise InvalidValue(
                "distribution can be logprobs only on a scale of single digits",
                code="levels_of_two_digits",
            )
        if not 0 <= self.least_mass <= 1:
            raise InvalidValue(
                f"least_mass must be from 0 to 1, got {self.least_mass!r}",
                code="least_mass_out_of_range",
            )
        check_template("form", self.form, FORM_FIELDS)
        check_template("steps_prompt", self.steps_prompt, ASPECT_FIELDS | {"subject"})
        _ = self.sampling  # which checks its numbers

    @property
    def form_in_use(self) -> str:
        return self.form or FORMS[self.unit]

    @property
    def sampling(self) -> Sampling:
        by_logprobs = self.distribution == "logprobs"
        return Sampling(
            n=1 if by_logprobs else self.n,
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            seed=self.seed,
            top_logprobs=self.top_logprobs if by_logprobs else None,
        )

    @property
    def texts(self) -> dict[str, str]:
        return {
            "aspect": self.aspect,
            "criteria": self.criteria,
            "low": str(self.low),
            "high": str(self.high),
            "steps": self.steps or NO_STEPS,
        }

    @property
    def fingerprint(self) -> str:
        """A hash of all that can change a score; how the steps came about cannot.

        Examples
        --------
        >>> settings = GEvalSettings(aspect="Tone", criteria="Is it kind?", low=0, high=1)
        >>> replace(settings, steps_model="tiny").fingerprint == settings.fingerprint
        True
        """
        fields = asdict(self) | {"form": self.form_in_use, "steps": self.texts["steps"]}
        origins = ("steps_model", "steps_prompt")
        return digest({name: value for name, value in fields.items() if name not in origins})


class GEval(EndpointJudge):
    """The probability-weighted rating of one aspect by a language model.

    Parameters
    ----------
    settings : GEvalSettings or str
        Or the name of a preset (coherence, naturalness, engagingness, groundedness, dialogue),
        or the path of a JSON file.
    client : Client, optional
        Without one the judge describes itself, and refuses to score.
    honours_n : bool
        Whether the endpoint gives several replies at a time, as `probe` found.

    References
    ----------
    .. [1] Y. Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment.
       EMNLP, 2511-2522.

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> GEval("groundedness", client=Client(Endpoint(base_url="", model="tiny"))).signature
    'geval|model:tiny|aspect:Groundedness|scale:0-1|unit:response|distribution:samples|n:20|...'
    """

    name = "geval"
    outputs = ("geval",)
    settings: GEvalSettings

    def __init__(
        self,
        settings: GEvalSettings | str = "coherence",
        *,
        client: Client | None = None,
        honours_n: bool = True,
    ) -> None:
        super().__init__(client, honours_n=honours_n)
        self.settings = read_settings(settings) if isinstance(settings, str) else settings
        self.needs = check_template("form", self.settings.form_in_use, FORM_FIELDS) & NEEDED_FIELDS

    @property
    def signature(self) -> str:
        settings = self.settings
        by_logprobs = settings.distribution == "logprobs"
        drawn = {"top_logprobs": settings.top_logprobs} if by_logprobs else {"n": settings.n}
        optional = {"top_p": settings.top_p, "seed": settings.seed}
        return sign(
            self.name,
            model=self.client.endpoint.model,
            aspect=settings.aspect,
            scale=f"{settings.low}-{settings.high}",
            unit=settings.unit,
            distribution=settings.distribution,
            **drawn,
            temperature=f"{settings.temperature:g}",
            **{name: value for name, value in optional.items() if value is not None},
            max_tokens=settings.max_tokens,
            settings=settings.fingerprint,
            least_mass=f"{settings.least_mass:g}",
            reading="released" if settings.released else "labelled",
            version=1 if settings.released else 2,
        )

    @cached_property
    def sampling(self) -> Sampling:
        return self.settings.sampling

    def messages(self, example: Example) -> Messages:
        return chat("", fill(self.settings.form_in_use, example, **self.settings.texts))

    def read(self, sample: Sample) -> Score:
        readings = [self._reading(reply.text) for reply in sample.replies]
        weighted = self._distribution(sample, readings)
        unread = count_unread(readings)
        raw = sample.record(
            probabilities={f"{level:g}": share for level, share in weighted.probabilities.items()},
            mass=weighted.mass,
            unread=unread,
        )
        if not weighted.weights:
            codes = ", ".join(f"{code}: {n}" for code, n in unread.items())
            n = len(sample.replies)
            problem = f"no rating in {'the reply' if n == 1 else f'any of {n} replies'}"
            problem += f" ({codes})" if codes else ""
            return Score(math.nan, CodedText(problem, code="no_rating"), raw)
        if weighted.mass < self.settings.least_mass:
            problem = f"the scale holds {weighted.mass:.3g} of the distribution, under "
            problem += f"{self.settings.least_mass:g}"
            return Score(math.nan, CodedText(problem, code="too_little_mass"), raw)
        return Score(weighted.expectation, None, raw)

    def _distribution(self, sample: Sample, readings: Sequence[Reading]) -> Distribution:
        settings = self.settings
        if settings.distribution == "logprobs":
            levels = range(settings.low, settings.high + 1)
            return from_tokens(sample.replies[0].tokens, levels, settings.aspect)
        return from_samples([reading.value for reading in readings])

    def _reading(self, text: str) -> Reading:
        settings = self.settings
        if settings.released:
            return read_rating_as_released(text)
        return read_rating(text, settings.aspect, settings.low, settings.high)


def read_settings(name: str) -> GEvalSettings:
    """Read the settings of that name.

    Parameters
    ----------
    name : str
        A preset, or the path of a JSON file.

    Returns
    -------
    GEvalSettings

    Raises
    ------
    ValueError
        If there is neither, or the file is not of that form.

    Examples
    --------
    >>> read_settings("groundedness").high
    1
    """
    if name in PRESETS:
        return PRESETS[name]
    if Path(name).is_file():
        return GEvalSettings.from_file(name)
    raise InvalidValue(
        f"settings must be one of {', '.join(PRESETS)}, or the path of a JSON file, got {name!r}",
        code="unknown_settings",
    )


def with_steps(settings: GEvalSettings, client: Client, *, max_tokens: int = 512) -> GEvalSettings:
    """Have the judge write its evaluation steps from the criteria, once.

    Keep what is returned: the steps are part of the metric, and another call may write others.

    Parameters
    ----------
    settings : GEvalSettings
        Whatever steps they hold are written anew.
    client : Client
    max_tokens : int
        The longest list of steps.

    Returns
    -------
    GEvalSettings
        With the steps, verbatim but for blanks around them, and the model that wrote them.

    Raises
    ------
    EndpointRefusedError
        If the model writes nothing.
    EndpointError
    BudgetSpentError

    References
    ----------
    .. [1] Y. Liu et al. (2023). G-Eval: NLG Evaluation using GPT-4 with Better Human Alignment.
       EMNLP, 2511-2522, section 2 ("Auto Chain-of-Thoughts").
    """
    fields = settings.texts | {"subject": SUBJECTS[settings.unit]}
    prompt = Template(settings.steps_prompt).substitute(fields)
    answer = client.chat(chat("", prompt), max_tokens=max_tokens, temperature=0.0)
    steps = answer.replies[0].text.strip()
    if not steps:
        raise EndpointRefusedError(
            "the endpoint wrote no evaluation steps; ask again, or give some", code="no_steps"
        )
    return replace(settings, steps=steps, steps_model=answer.model or client.endpoint.model)


# Questions to begin with: the four aspects of Topical-Chat, and whole dialogues. The scales are
# those that annotators rated on (Mehri and Eskenazi, 2020); wording and steps are ours.
PRESETS: Mapping[str, GEvalSettings] = {
    "coherence": GEvalSettings(
        aspect="Coherence",
        criteria="Does the response follow from the conversation? 1: it changes the topic or "
        "ignores what was said. 2: it takes up the conversation loosely. 3: it answers and "
        "continues what was said.",
        low=1,
        high=3,
        steps="1. Read the conversation and note what its last turn asks or says.\n"
        "2. Read the response and see what it takes up of that.\n"
        "3. Choose the level that fits.",
    ),
    "naturalness": GEvalSettings(
        aspect="Naturalness",
        criteria="Could a person have said this? 1: no. 2: somewhat. 3: yes.",
        low=1,
        high=3,
        steps="1. Read the response as if spoken.\n"
        "2. Look for phrases that no fluent speaker would use.\n"
        "3. Choose the level that fits.",
    ),
    "engagingness": GEvalSettings(
        aspect="Engagingness",
        criteria="Is the response interesting? 1: dull or generic. 2: somewhat interesting. "
        "3: it presents something of interest.",
        low=1,
        high=3,
        steps="1. Read the conversation and the response.\n"
        "2. See whether the response brings an opinion, a fact or a question worth an answer.\n"
        "3. Choose the level that fits.",
    ),
    "groundedness": GEvalSettings(
        aspect="Groundedness",
        criteria="Does the response use the fact that goes with the conversation? 0: it does "
        "not mention it. 1: it uses it well.",
        low=0,
        high=1,
        steps="1. Read the conversation and find the fact given with it.\n"
        "2. See whether the response rests on that fact.\n"
        "3. Choose 0 or 1.",
    ),
    "dialogue": GEvalSettings(
        aspect="Overall quality",
        criteria="How good is the conversation as a whole? 1: very bad. 5: very good.",
        low=1,
        high=5,
        unit="dialogue",
        steps="1. Read the whole conversation.\n"
        "2. Consider whether its turns fit together, are informative and pleasant.\n"
        "3. Choose the level that fits.",
    ),
}
