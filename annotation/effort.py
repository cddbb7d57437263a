"""How one submission was worked on: by the server's times, by the page's, and by its events.

The page's clock and its events are the annotator's to invent: they can speak against a submission,
and never for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from annotation.models.judgments import ROUNDING_SECONDS

# What the work page records (templates/worker_page/events.js), each row [seconds, kind, numbers…].
INPUT, HIDE, SHOW, BLUR, FOCUS = "input", "hide", "show", "blur", "focus"
PASTE, SEEN, TYPING = "paste", "seen", "typing"
N_NUMBERS = {INPUT: 0, HIDE: 0, SHOW: 0, BLUR: 0, FOCUS: 0, PASTE: 1, SEEN: 2, TYPING: 4}
MOST_EVENTS, GREATEST_NUMBER = 300, 10**8
# Two or three windows side by side are all in sight at once. From more time in sight than so many
# times the time since the previous submission, the page was not worked on when it says it was.
OVERLAP = 3
# Signs of `Effort.signs`.
NO_INPUT, UNTYPED, FAST_TYPING, UNSEEN, MOSTLY_HIDDEN = (
    *("no_input", "untyped", "fast_typing", "unseen"),
    "mostly_hidden",
)
LEAST_TEXT = 20
"""Characters: shorter texts may be chosen from what a keyboard suggests."""
FASTEST_TYPING_MS = 25
"""Between two characters. Few of 168,000 typists reached 120 words per minute, which is 100 ms
(Dhakal et al. 2018, doi:10.1145/3173574.3174220)."""

Event = tuple[Any, ...]


def read_events(content: object) -> list[Event]:
    """The events of an answer that can be read: the rest, and what is too much, is left out."""
    rows = content[:MOST_EVENTS] if isinstance(content, list) else []
    return [tuple(row) for row in rows if _is_event(row)]


def _is_event(row: object) -> bool:
    if not isinstance(row, list) or len(row) < 2 or not isinstance(row[1], str):
        return False
    at, kind, *numbers = row
    return len(numbers) == N_NUMBERS.get(kind) and all(map(_is_number, (at, *numbers)))


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value <= GREATEST_NUMBER


@dataclass(frozen=True)
class Effort:
    """The times and events of one submission.

    `server_seconds` is the time since the annotator accepted the page, or since their previous
    submission if that came later; None if nobody measured it. `total_seconds` is always the time
    since accepting. `reported_seconds` is the greatest time that the answer contains.
    """

    total_seconds: float | None
    server_seconds: float | None
    active_seconds: float | None
    reported_seconds: float | None = None
    events: Sequence[Event] = ()
    n_characters: int = 0
    is_simulated: bool = False
    has_unproved_mark: bool = False

    @property
    def seconds(self) -> float | None:
        """The time that flags use. The page's own time counts only if it is shorter; simulated
        annotators have no other."""
        if self.is_exempt and self.active_seconds is not None:
            return self.active_seconds
        times = [one for one in (self.server_seconds, self.active_seconds) if one is not None]
        return min(times, default=None)

    @property
    def is_exempt(self) -> bool:
        """Whether its times mean nothing: this site's simulated crowd made it, or its owners
        uploaded it as simulated. An annotator cannot claim that."""
        return self.is_simulated and not self.has_unproved_mark

    @property
    def is_contradictory(self) -> bool:
        """Whether reported and measured times cannot both be right."""
        if self.is_exempt:
            return False
        if self.has_unproved_mark:
            return True
        if self.total_seconds is None or self.server_seconds is None:
            return False
        reported = max(self.reported_seconds or 0, self.active_seconds or 0)
        is_overlapping = self.server_seconds < self.total_seconds
        limit = OVERLAP * (self.server_seconds + ROUNDING_SECONDS)
        return reported > self.total_seconds + ROUNDING_SECONDS or (
            is_overlapping and (self.active_seconds or 0) > limit
        )

    @property
    def counts(self) -> Counter[str]:
        return Counter(row[1] for row in self.events)

    @property
    def first_input_seconds(self) -> float | None:
        return next((row[0] for row in self.events if row[1] == INPUT), None)

    @property
    def hidden_seconds(self) -> float:
        """How long the page was hidden, as far as it was shown again."""
        total, since = 0.0, None
        for at, kind, *_numbers in self.events:
            if kind == HIDE and since is None:
                since = at
            elif kind == SHOW and since is not None:
                total, since = total + max(at - since, 0), None
        return total

    @property
    def n_pasted(self) -> int:
        return int(sum(row[2] for row in self.events if row[1] == PASTE))

    @property
    def n_typed(self) -> int:
        return int(sum(row[2] for row in self.events if row[1] == TYPING))

    @property
    def typing_ms(self) -> tuple[int, int] | None:
        """The median and the interquartile range of the time between two characters, if so many
        were typed that these say something."""
        rows = [row for row in self.events if row[1] == TYPING and row[3] >= LEAST_TEXT]
        longest = max(rows, key=lambda row: row[3], default=None)
        return (int(longest[4]), int(longest[5])) if longest else None

    @property
    def seen(self) -> tuple[int, int] | None:
        rows = [row for row in self.events if row[1] == SEEN]
        return max(((int(row[2]), int(row[3])) for row in rows), default=None)

    @property
    def signs(self) -> list[str]:
        """What is unusual in the events: reasons to look, and no flags. None without events."""
        if not self.events:
            return []
        n_entered, seen, typing = self.n_typed + self.n_pasted, self.seen, self.typing_ms
        signs = {
            NO_INPUT: self.first_input_seconds is None,
            UNTYPED: self.n_characters >= LEAST_TEXT and 2 * n_entered < self.n_characters,
            FAST_TYPING: typing is not None and typing[0] < FASTEST_TYPING_MS,
            UNSEEN: seen is not None and seen[0] < seen[1],
            MOSTLY_HIDDEN: bool(self.total_seconds)
            and 2 * self.hidden_seconds > (self.total_seconds or 0),
        }
        return [name for name, is_there in signs.items() if is_there]


def server_times(rows: Iterable[Mapping[str, Any]]) -> dict[int, float | None]:
    """The server's time of each submission by its key: `Effort.server_seconds`.

    `rows` are all submissions of a study, with `pk`, `annotator`, `accepted_at`, `submitted_at` and
    `seconds`. Who accepts ten pages and submits all of them a minute later has worked a minute on
    the first, and seconds on each of the others, as far as anyone measured.
    """
    times: dict[int, float | None] = {}
    previous: dict[int, datetime] = {}
    dated = [row for row in rows if row["submitted_at"] is not None]
    for row in sorted(dated, key=lambda row: (row["submitted_at"], row["pk"])):
        last = previous.get(row["annotator"])
        accepted_at: datetime | None = row["accepted_at"]
        seconds: float | None = row["seconds"]
        if seconds is not None and last is not None and accepted_at is not None:
            since_last = (row["submitted_at"] - last).total_seconds()
            seconds = min(seconds, since_last) if last > accepted_at else seconds
        times[row["pk"]] = seconds
        previous[row["annotator"]] = row["submitted_at"]
    return times
