"""The address of a judge, and the limits of its use: from arguments or variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from urllib.parse import urlsplit

from error_codes import InvalidValue
from metrics.scorers.errors import EndpointRefusedError

UNSET = "unset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An OpenAI-compatible server and a model on it.

    Attributes
    ----------
    base_url : str
        Up to and with the version, ``https://api.openai.com/v1``; ``""`` where none is set.
    model : str
        As the server names it.
    api_key : str
        Sent with each request and nowhere else, least of all into a log; ``""`` sends none.
    timeout_seconds : float
        How long one answer may take.
    length_field : str
        What the server calls the longest reply: ``max_tokens``, or ``max_completion_tokens``.
    addresses : tuple of str
        IP addresses to connect to in place of what the name leads to; none looks it up.

    Raises
    ------
    ValueError
        If the address is not plain HTTP(S), has no valid port, or carries a user name or a query.

    Examples
    --------
    >>> Endpoint(base_url="http://127.0.0.1:8000/v1/", model="tiny").url("chat/completions")
    'http://127.0.0.1:8000/v1/chat/completions'
    """

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 120.0
    length_field: str = "max_tokens"
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.base_url:
            return
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidValue(
                f"base_url must start with http:// or https://, got {self.base_url!r}",
                code="base_url_scheme",
            )
        if parts.username or parts.password or parts.query:
            raise InvalidValue(
                "base_url must not carry a user name, a password or a query", code="base_url_secret"
            )
        try:
            _ = parts.port
        except ValueError as error:
            raise InvalidValue(
                f"base_url has no valid port: {self.base_url!r}", code="base_url_port"
            ) from error

    def url(self, path: str) -> str:
        """Address an operation.

        Parameters
        ----------
        path : str
            Such as ``chat/completions``.

        Returns
        -------
        str

        Raises
        ------
        EndpointRefusedError
            If no address or no model is set.
        """
        if not self.base_url or self.model == UNSET:
            raise EndpointRefusedError(
                "no judge is set: set JUDGE_BASE_URL and JUDGE_MODEL", code="no_endpoint"
            )
        return f"{self.base_url.rstrip('/')}/{path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be asked of an endpoint at a time; None is no limit.

    Attributes
    ----------
    requests_per_minute, tokens_per_minute : float or None
        Kept by spacing requests evenly; tokens are estimated before they are sent.
    concurrency : int
        Requests under way at a time.
    attempts : int
        How often one request is sent before it counts as failed.
    longest_wait_seconds : float
        The longest pause between two attempts. An endpoint that asks for a longer one is
        unavailable.

    Raises
    ------
    ValueError
        If one of them is not positive.

    Examples
    --------
    >>> Limits(requests_per_minute=60).concurrency
    4
    """

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    concurrency: int = 4
    attempts: int = 5
    longest_wait_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("requests_per_minute", "tokens_per_minute", "concurrency", "attempts"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InvalidValue(
                    f"{name} must be positive, got {value!r}", code=f"{name}_out_of_range"
                )


def endpoint_from(variables: Mapping[str, str]) -> Endpoint:
    """Read ``JUDGE_BASE_URL``, ``JUDGE_MODEL``, ``JUDGE_API_KEY``, ``JUDGE_LENGTH_FIELD``,
    ``JUDGE_TIMEOUT_SECONDS`` and ``JUDGE_ADDRESSES``.

    Parameters
    ----------
    variables : mapping of str to str
        Such as ``os.environ``.

    Returns
    -------
    Endpoint
        Where nothing is set, one that refuses every request.

    Raises
    ------
    ValueError
        If a value cannot be read; the message names the variable.

    Examples
    --------
    >>> endpoint_from({"JUDGE_BASE_URL": "http://127.0.0.1/v1", "JUDGE_MODEL": "tiny"}).model
    'tiny'
    """
    return Endpoint(
        base_url=variables.get("JUDGE_BASE_URL", ""),
        model=variables.get("JUDGE_MODEL", "") or UNSET,
        api_key=api_key_from(variables, "JUDGE_API_KEY"),
        timeout_seconds=float(number(variables, "JUDGE_TIMEOUT_SECONDS") or 120),
        length_field=variables.get("JUDGE_LENGTH_FIELD", "") or "max_tokens",
        addresses=tuple(variables.get("JUDGE_ADDRESSES", "").split()),
    )


def api_key_from(variables: Mapping[str, str], variable: str) -> str:
    r"""Read a key, without the white space around it.

    Parameters
    ----------
    variables : mapping of str to str
    variable : str

    Returns
    -------
    str
        ``""`` where it is not set.

    Raises
    ------
    ValueError
        If it holds what no header can carry; libraries would repeat the key in their error.

    Examples
    --------
    >>> api_key_from({"JUDGE_API_KEY": " sesame\n"}, "JUDGE_API_KEY")
    'sesame'
    """
    key = variables.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InvalidValue(
            f"{variable} holds a character that no key has; copy the key anew", code="key_unfit"
        )
    return key


def limits_from(variables: Mapping[str, str]) -> Limits:
    """Read ``JUDGE_REQUESTS_PER_MINUTE``, ``JUDGE_TOKENS_PER_MINUTE``, ``JUDGE_CONCURRENCY``.

    Parameters
    ----------
    variables : mapping of str to str

    Returns
    -------
    Limits

    Raises
    ------
    ValueError
        If a value is no positive number.

    Examples
    --------
    >>> limits_from({"JUDGE_CONCURRENCY": "8"}).concurrency
    8
    """
    requests = number(variables, "JUDGE_REQUESTS_PER_MINUTE")
    tokens = number(variables, "JUDGE_TOKENS_PER_MINUTE")
    return Limits(
        requests_per_minute=None if requests is None else float(requests),
        tokens_per_minute=None if tokens is None else float(tokens),
        concurrency=int(number(variables, "JUDGE_CONCURRENCY") or 4),
    )


def number(variables: Mapping[str, str], variable: str) -> Decimal | None:
    """Read one number.

    Parameters
    ----------
    variables : mapping of str to str
    variable : str

    Returns
    -------
    Decimal or None
        None where it is not set.

    Raises
    ------
    ValueError
        If it is no finite number from 0.

    Examples
    --------
    >>> number({"JUDGE_MAX_USD": "2.50"}, "JUDGE_MAX_USD")
    Decimal('2.50')
    """
    text = variables.get(variable, "").strip()
    if not text:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not (value.is_finite() and value >= 0):
        raise InvalidValue(f"{variable} must be a number from 0, got {text!r}", code="not_a_number")
    return value
