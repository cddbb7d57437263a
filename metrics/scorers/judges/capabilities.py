"""What an endpoint really does, found by asking: several ignore what they lack in silence."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex

from metrics.scorers.errors import EndpointError
from metrics.scorers.judges.client import Client
from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.readings import Answer, Reply
from metrics.scorers.judges.settings import digest

REQUESTED_LOGPROBS = 5
PROBE = ({"role": "user", "content": "Rate the response on a scale from 1 to 3. Score:"},)
DRAWN = ({"role": "user", "content": "Name animals at random, in random order:"},)
ECHOED = "one two three"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one endpoint was seen to do.

    Attributes
    ----------
    asked_model, reported_model : str
        The name it was asked for, and the one it answered with.
    several_replies : bool
        ``n=2`` gave two replies.
    samples_differ : bool
        Two requests for 16 tokens at temperature 1 gave two texts. Where they gave one, the
        endpoint may not sample at all: n replies would be one reply n times.
    top_logprobs : int
        How many alternatives came with a token of a chat, of the 5 asked for; 0 is none.
    echoed_logprobs : bool
        Completions with ``echo`` gave the log-probabilities of the prompt.
    evidence : tuple of (str, str)
        What was asked, and what came back, in words.

    Examples
    --------
    >>> seen = Capabilities(
    ...     asked_model="tiny", reported_model="tiny", several_replies=False,
    ...     samples_differ=True, top_logprobs=5, echoed_logprobs=True,
    ...     evidence=(("n=2", "1 reply"),),
    ... )
    >>> seen.distribution
    'logprobs'
    >>> Capabilities.from_json(seen.to_json()) == seen
    True
    """

    asked_model: str
    reported_model: str
    several_replies: bool
    samples_differ: bool
    top_logprobs: int
    echoed_logprobs: bool
    evidence: tuple[tuple[str, str], ...]

    @property
    def distribution(self) -> str:
        """How G-Eval would best come to its distribution here: ``logprobs`` or ``samples``."""
        return "logprobs" if self.top_logprobs > 1 else "samples"

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Capabilities":
        fields = json.loads(text)
        fields["evidence"] = tuple((request, reply) for request, reply in fields["evidence"])
        return cls(**fields)


def probe(client: Client) -> Capabilities:
    """Find out what an endpoint does, with six short requests.

    That it answers a plain chat is a condition; that it refuses, ignores or breaks on the rest
    is a finding.

    Parameters
    ----------
    client : Client

    Returns
    -------
    Capabilities

    Raises
    ------
    EndpointError
        If it does not answer a plain chat.
    BudgetSpentError

    Examples
    --------
    >>> from metrics.scorers.judges.endpoint import Endpoint
    >>> probe(Client(Endpoint(base_url="", model="tiny")))
    Traceback (most recent call last):
    metrics.scorers.errors.EndpointRefusedError: no judge is set: set JUDGE_BASE_URL and ...
    """
    plain = client.chat(PROBE, max_tokens=4)
    several, seen_n = _observe(lambda: client.chat(PROBE, n=2, max_tokens=4, temperature=1.0))
    draws = [_observe(lambda: client.chat(DRAWN, max_tokens=16, temperature=1.0)) for _ in range(2)]
    tops, seen_tops = _observe(
        lambda: client.chat(PROBE, max_tokens=4, logprobs=True, top_logprobs=REQUESTED_LOGPROBS)
    )
    echoed, seen_echo = _observe(
        lambda: client.complete(ECHOED, max_tokens=1, echo=True, logprobs=1, temperature=0.0)
    )
    return Capabilities(
        asked_model=client.endpoint.model,
        reported_model=plain.model,
        several_replies=len(several) == 2,
        samples_differ=len({reply.text for replies, _ in draws for reply in replies}) == 2,
        top_logprobs=max(
            (len(token.alternatives) for reply in tops[:1] for token in reply.tokens), default=0
        ),
        echoed_logprobs=_is_echo(echoed),
        evidence=(
            ("chat", _summary((plain.replies[0],))),
            ("chat, n=2", seen_n),
            *(("chat, temperature=1", draw) for _, draw in draws),
            (f"chat, logprobs, top_logprobs={REQUESTED_LOGPROBS}", seen_tops),
            (f"completions, echo, logprobs=1 of {ECHOED!r}", seen_echo),
        ),
    )


def _observe(request: Callable[[], Answer]) -> tuple[tuple[Reply, ...], str]:
    try:
        replies = request().replies
    except EndpointError as error:
        return (), f"{type(error).__name__}: {error}"
    return replies, _summary(replies)


def _summary(replies: tuple[Reply, ...]) -> str:
    texts = ", ".join(repr(reply.text[:40]) for reply in replies)
    n_tokens = len(replies[0].tokens)
    tokens = f"{n_tokens} tokens with log-probabilities" if n_tokens else "no log-probabilities"
    return f"{len(replies)} {'reply' if len(replies) == 1 else 'replies'} ({texts}), {tokens}"


def _is_echo(replies: tuple[Reply, ...]) -> bool:
    """Whether the tokens spell the prompt, and all but its first have a log-probability."""
    if not replies or not replies[0].text.startswith(ECHOED):
        return False
    tokens = replies[0].tokens
    spelt = "".join(token.text for token in tokens).lstrip()
    scored = [token for token in tokens[1:] if token.logprob == token.logprob]
    return spelt.startswith(ECHOED) and len(tokens) > 2 and len(scored) == len(tokens) - 1


def capabilities_of(client: Client, folder: Path, *, anew: bool = False) -> Capabilities:
    """What an endpoint can do with a model: as stored, or by probing it now.

    Parameters
    ----------
    client : Client
    folder : Path
        Where capabilities are stored, one file for an address and a model. Where it cannot be
        written, the endpoint is probed each time.
    anew : bool
        Probe whatever was found before.

    Returns
    -------
    Capabilities

    Raises
    ------
    EndpointError
        If it does not answer a plain chat.
    BudgetSpentError

    Examples
    --------
    >>> capabilities_of(Client(Endpoint(base_url="", model="tiny")), Path("probes"))
    Traceback (most recent call last):
    metrics.scorers.errors.EndpointRefusedError: no judge is set: set JUDGE_BASE_URL and ...
    """
    capabilities = None if anew else stored_capabilities(client.endpoint, folder)
    if capabilities is None:
        capabilities = probe(client)
        _store(capabilities, _path(client.endpoint, folder))
    return capabilities


def stored_capabilities(endpoint: Endpoint, folder: Path) -> Capabilities | None:
    """Look up what is stored of an endpoint and a model.

    Parameters
    ----------
    endpoint : Endpoint
    folder : Path

    Returns
    -------
    Capabilities or None
        None where it was never probed, or the file cannot be read.

    Examples
    --------
    >>> endpoint = Endpoint(base_url="http://127.0.0.1/v1", model="tiny")
    >>> stored_capabilities(endpoint, Path("no such folder"))
    """
    try:
        return Capabilities.from_json(_path(endpoint, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _path(endpoint: Endpoint, folder: Path) -> Path:
    address = {"base_url": endpoint.base_url.rstrip("/"), "model": endpoint.model}
    return folder / f"{digest(address)}.json"


def _store(capabilities: Capabilities, path: Path) -> None:
    """Write whole or not at all: another process may be reading."""
    draft = path.with_suffix(f".{token_hex(4)}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(json.loads(capabilities.to_json()), indent=1), encoding="utf-8")
        draft.replace(path)
