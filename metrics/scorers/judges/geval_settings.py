"""What G-Eval asks: an aspect, its criteria, its steps and its form, for a study to keep."""

from dataclasses import asdict, dataclass, replace
from string import Template
from typing import Literal

from error_codes import InvalidValue
from metrics.scorers.errors import EndpointRefusedError
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.samples import Sampling
from metrics.scorers.judges.settings import JudgeSettings
from metrics.scorers.judges.templates import EXAMPLE_FIELDS, chat, check_template, digest

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
        _sampling(self)

    @property
    def form_in_use(self) -> str:
        """The form, or the unit's own where none is given."""
        return self.form or FORMS[self.unit]

    @property
    def sampling(self) -> Sampling:
        """How replies are drawn: n of them, or one with its log-probabilities."""
        return _sampling(self)

    @property
    def texts(self) -> dict[str, str]:
        """What the templates may say of the question."""
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


def _sampling(settings: GEvalSettings) -> Sampling:
    by_logprobs = settings.distribution == "logprobs"
    return Sampling(
        n=1 if by_logprobs else settings.n,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_tokens,
        seed=settings.seed,
        top_logprobs=settings.top_logprobs if by_logprobs else None,
    )
