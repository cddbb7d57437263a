"""What judging costs: an estimate before, an account and a hard cap during."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from threading import Lock
from typing import NamedTuple

from metrics.scorers.errors import BudgetSpentError
from metrics.scorers.judges.endpoint import number

BYTES_A_TOKEN = 3
"""Of UTF-8. English has about four: rather too many tokens are estimated than too few."""


class Usage(NamedTuple):
    """Tokens of one request or of many."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost.

    Examples
    --------
    >>> Prices(Decimal("0.50"), Decimal("1.50")).usd(Usage(2000, 1000))
    Decimal('0.0025')
    """

    usd_per_million_input: Decimal = Decimal(0)
    usd_per_million_output: Decimal = Decimal(0)

    def usd(self, usage: Usage) -> Decimal:
        """Price tokens.

        Parameters
        ----------
        usage : Usage

        Returns
        -------
        Decimal
            US dollars, not rounded.
        """
        cost = usage.prompt_tokens * self.usd_per_million_input
        cost += usage.completion_tokens * self.usd_per_million_output
        return (cost / 1_000_000).normalize()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What judging would take at most, were nothing to fail.

    Attributes
    ----------
    requests : int
    prompt_tokens, completion_tokens : int
        The first estimated from the texts, the second the longest replies allowed.
    usd : Decimal
    """

    requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: Decimal

    def __str__(self) -> str:
        return (
            f"{self.requests} requests, about {self.prompt_tokens} tokens out and at most "
            f"{self.completion_tokens} back, at most {self.usd:f} USD"
        )


def estimated_tokens(text: str) -> int:
    """Estimate, on the high side, how many tokens a text has.

    Parameters
    ----------
    text : str

    Returns
    -------
    int

    Examples
    --------
    >>> estimated_tokens("Hello there!"), estimated_tokens("")
    (4, 0)
    """
    return ceil(len(text.encode()) / BYTES_A_TOKEN)


class Budget:
    """Counts what is spent, and stops before a cap is passed.

    Parameters
    ----------
    max_requests : int, optional
        Every attempt counts, those that failed too.
    max_usd : Decimal, optional
        A request must fit in at its highest possible price before it is sent.
    prices : Prices

    Raises
    ------
    ValueError
        If money is capped and no price is given: the cap would never hold.

    Examples
    --------
    >>> budget = Budget(max_requests=1)
    >>> budget.reserve(Usage(10, 10))
    >>> budget.reserve(Usage(10, 10))
    Traceback (most recent call last):
    metrics.scorers.errors.BudgetSpentError: the cap of 1 requests is reached (1 were sent); ...
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_usd: Decimal | None = None,
        prices: Prices = Prices(),
    ) -> None:
        if max_usd is not None and prices == Prices():
            raise ValueError(
                "max_usd needs prices: give what a million tokens cost "
                "(JUDGE_USD_PER_MILLION_INPUT, JUDGE_USD_PER_MILLION_OUTPUT)"
            )
        self.max_requests = max_requests
        self.max_usd = max_usd
        self.prices = prices
        self.requests = 0
        self.usage = Usage()
        self.usd = Decimal(0)
        self._lock = Lock()

    def check(self, requests: int, usage: Usage) -> None:
        """Ask whether so much more may be spent.

        Parameters
        ----------
        requests : int
        usage : Usage
            Of them together.

        Raises
        ------
        BudgetSpentError
        """
        if self.max_requests is not None and self.requests + requests > self.max_requests:
            raise BudgetSpentError(
                f"the cap of {self.max_requests} requests is reached ({self.requests} were sent); "
                "what was scored stands, and another run goes on from there"
            )
        if self.max_usd is not None and self.usd + self.prices.usd(usage) > self.max_usd:
            raise BudgetSpentError(
                f"the cap of {self.max_usd} USD is reached ({self.usd:f} are spent); "
                "what was scored stands, and another run goes on from there"
            )

    def reserve(self, most: Usage) -> None:
        """Set aside one request at its highest price.

        Parameters
        ----------
        most : Usage
            What it may use at most.

        Raises
        ------
        BudgetSpentError
            If it does not fit; nothing is then set aside.
        """
        with self._lock:
            self.check(1, most)
            self.requests += 1
            self._add(most, 1)

    def settle(self, most: Usage, used: Usage) -> None:
        """Replace what was set aside by what was used.

        Parameters
        ----------
        most, used : Usage
        """
        with self._lock:
            self._add(most, -1)
            self._add(used, 1)

    def _add(self, usage: Usage, sign: int) -> None:
        self.usage = Usage(
            self.usage.prompt_tokens + sign * usage.prompt_tokens,
            self.usage.completion_tokens + sign * usage.completion_tokens,
        )
        self.usd += sign * self.prices.usd(usage)


def budget_from(variables: Mapping[str, str]) -> Budget:
    """Read the caps and the prices.

    ``JUDGE_MAX_REQUESTS``, ``JUDGE_MAX_USD``, ``JUDGE_USD_PER_MILLION_INPUT`` and
    ``JUDGE_USD_PER_MILLION_OUTPUT``.

    Parameters
    ----------
    variables : mapping of str to str

    Returns
    -------
    Budget

    Raises
    ------
    ValueError
        If a value is no number, or money is capped without prices.

    Examples
    --------
    >>> budget_from({"JUDGE_MAX_REQUESTS": "100"}).max_requests
    100
    """
    requests = number(variables, "JUDGE_MAX_REQUESTS")
    return Budget(
        max_requests=None if requests is None else int(requests),
        max_usd=number(variables, "JUDGE_MAX_USD"),
        prices=Prices(
            number(variables, "JUDGE_USD_PER_MILLION_INPUT") or Decimal(0),
            number(variables, "JUDGE_USD_PER_MILLION_OUTPUT") or Decimal(0),
        ),
    )
