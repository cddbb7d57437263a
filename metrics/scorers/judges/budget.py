"""What judging costs: an estimate before, an account and a hard cap during."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from threading import Lock
from typing import NamedTuple

from error_codes import InvalidValue
from metrics.scorers.errors import BudgetSpentError
from metrics.scorers.judges.endpoint import number

# Of UTF-8. English has about four: rather too many tokens are estimated than too few.
BYTES_A_TOKEN = 3


STANDS = "what was scored stands, and another run goes on from there"


class Usage(NamedTuple):
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
        A request must fit in at its highest possible price before it is sent. Where an endpoint
        counts more tokens than that allowed for, replies under way may pass the cap by as much;
        nothing is sent after them.
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
    metrics.scorers.errors.BudgetSpentError: the cap of 1 requests is reached: 1 were sent, 0 ...
    """

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_usd: Decimal | None = None,
        prices: Prices = Prices(),
    ) -> None:
        if max_usd is not None and prices == Prices():
            raise InvalidValue(
                "max_usd needs prices: give what a million tokens cost "
                "(JUDGE_USD_PER_MILLION_INPUT, JUDGE_USD_PER_MILLION_OUTPUT)",
                code="prices_missing",
            )
        self.max_requests = max_requests
        self.max_usd = max_usd
        self.prices = prices
        self.requests = 0
        self.usage = Usage()
        self.usd = Decimal(0)
        self.on_batch: Callable[[int, Decimal], None] | None = None
        self._lock = Lock()

    def begin(self, requests: int, usage: Usage) -> None:
        """Check a batch, and say what is spent at most when it is done, before any of it is sent.

        Who stores that, as `on_batch`, counts enough even of a batch whose end nobody sees.

        Parameters
        ----------
        requests : int
        usage : Usage
            Of them together.

        Raises
        ------
        BudgetSpentError
        """
        self.check(requests, usage)
        if self.on_batch is not None:
            self.on_batch(self.requests + requests, self.usd + self.prices.usd(usage))

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
            left = max(self.max_requests - self.requests, 0)
            raise BudgetSpentError(
                f"the cap of {self.max_requests} requests is reached: {self.requests} were sent, "
                f"{left} are left, and {requests} were needed next; {STANDS}",
                code="requests_spent",
            )
        cost = self.prices.usd(usage)
        if self.max_usd is not None and self.usd + cost > self.max_usd:
            raise BudgetSpentError(self._spent(self.max_usd, cost), code="usd_spent")

    def _spent(self, max_usd: Decimal, cost: Decimal) -> str:
        spent = self.usd.normalize()
        over = (spent - max_usd).normalize()
        if over > 0:
            return (
                f"the cap of {max_usd} USD is passed by {over:f}: {spent:f} are spent, as "
                f"replies under way took more tokens than were to be expected at most; {STANDS}"
            )
        return (
            f"the cap of {max_usd} USD is reached: {spent:f} are spent, {-over:f} are left, and "
            f"the next texts may cost {cost:f}; {STANDS}"
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
