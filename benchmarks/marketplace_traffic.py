"""Speed of the worker site: ``python -m benchmarks.marketplace_traffic --help``.

Fifty workers do HITs of one group over and over, each the way a browser does: accept (POST), page
(the page to work on, and the frame in it), submit (POST). First without pauses, for whole cycles
per second; then with pauses for thinking, for the percentiles of each step.

With ``--last`` every worker asks for every HIT, all in the same order, so that they always meet;
each HIT has assignments for half of them. It prints how many assignments there are too many of,
and how many workers were shown an error: both must be 0, else it exits with 1.

Browsers are plain sockets that speak just enough HTTP, so that the machine's cores go to the
servers and not to the program that measures them.
"""

import multiprocessing
import random
import re
import select
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic, perf_counter, sleep
from urllib.parse import urlencode

from benchmarks.commands import DATABASE, SERVER, parse_options, say
from benchmarks.marketplace_site import (
    Site,
    describe_machine,
    enrol_requester,
    fresh_site,
    publish,
    sign_in_workers,
)

PERCENTILES = (50, 95, 99)
GENERATORS = 2
WARM_UP_SECONDS = 2.0
GRANTED, GONE = 302, 410
HEADER_END = b"\r\n\r\n"
CSRF_TOKEN = "benchmarkbenchmarkbenchmarkbench"
FRAME = re.compile(r'src="([^"]*/worker/frame/[^"]*)"')


@dataclass(frozen=True)
class Answer:
    status: int
    location: str
    text: str


@dataclass
class Browser:
    """One person's connection, kept open between requests as browsers do."""

    host: str
    port: int
    session_key: str
    _socket: socket.socket | None = field(default=None, repr=False)

    def get(self, path: str) -> Answer:
        return self._exchange(self._head("GET", path))

    def post(self, path: str, fields: dict[str, str], *, is_ours: bool = True) -> Answer:
        """Send a form, from a page of the site or, without a cookie, from a sandboxed frame."""
        body = urlencode(fields).encode()
        kind = "Content-Type: application/x-www-form-urlencoded\r\n"
        return self._exchange(
            self._head("POST", path, f"{kind}Content-Length: {len(body)}\r\n", with_cookies=is_ours)
            + body
        )

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _head(self, method: str, path: str, more: str = "", *, with_cookies: bool = True) -> bytes:
        cookies = (
            f"Cookie: sessionid={self.session_key}; csrftoken={CSRF_TOKEN}\r\n"
            f"X-CSRFToken: {CSRF_TOKEN}\r\n"
        )
        host = f"{self.host}:{self.port}"
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
            f"{cookies if with_cookies else ''}{more}\r\n"
        ).encode()

    def _exchange(self, message: bytes) -> Answer:
        connection = self._connection()
        connection.sendall(message)
        received = b""
        while HEADER_END not in received:
            received += self._more(connection)
        head, _, body = received.partition(HEADER_END)
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (x.partition(": ") for x in lines)}
        while len(body) < int(headers["content-length"]):
            body += self._more(connection)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(first.split()[1]), headers.get("location", ""), body.decode())

    def _connection(self) -> socket.socket:
        if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
            self.close()
        if self._socket is None:
            self._socket = socket.create_connection((self.host, self.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _more(self, connection: socket.socket) -> bytes:
        chunk = connection.recv(65_536)
        if not chunk:
            self.close()
            raise ConnectionError("The server hung up in the middle of an answer.")
        return chunk


@dataclass
class Tally:
    seconds: dict[str, list[float]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    cycles: int = 0
    lasted: float = 0.0

    @property
    def n_steps(self) -> int:
        return sum(map(len, self.seconds.values()))

    def timed(self, step: str, start: float) -> None:
        self.seconds.setdefault(step, []).append(perf_counter() - start)


def do_one_hit(browser: Browser, group_path: str, tally: Tally, thinking_seconds: float) -> bool:
    """Accept the group's next HIT, read its page and its frame, and submit. False where
    nothing is left or something went wrong, which the tally then says."""
    start = perf_counter()
    accepted = browser.post(f"{group_path}accept/", {})
    tally.timed("accept", start)
    if accepted.status == 410:
        return False
    if accepted.status != 302:
        return _failed(tally, "accept", accepted)
    sleep(thinking_seconds)
    start = perf_counter()
    page = browser.get(accepted.location)
    source = FRAME.search(page.text)
    frame = browser.get(source[1].replace("&amp;", "&")) if source else page
    tally.timed("page", start)
    if page.status != 200 or frame.status != 200 or source is None:
        return _failed(tally, "page", page if page.status != 200 else frame)
    sleep(thinking_seconds)
    assignment_id = accepted.location.rstrip("/").rpartition("/")[2]
    start = perf_counter()
    form = {"assignmentId": assignment_id, "rating": "4"}
    receipt = browser.post("/mturk/externalSubmit", form, is_ours=False)
    tally.timed("submit", start)
    if receipt.status != 200:
        return _failed(tally, "submit", receipt)
    tally.cycles += 1
    sleep(thinking_seconds)
    return True


def _failed(tally: Tally, step: str, answer: Answer) -> bool:
    tally.failures.append(f"{step}: {answer.status} {answer.text[:300]}")
    return False


def work_at_once(
    site: Site, sessions: Sequence[str], act: Callable[[Browser, Tally], None]
) -> Tally:
    def run(session: str) -> Tally:
        browser, tally = Browser(site.host, site.port, session), Tally()
        act(browser, tally)
        browser.close()
        return tally

    start = perf_counter()
    with ThreadPoolExecutor(len(sessions)) as pool:
        total = sum_tallies(pool.map(run, sessions))
    total.lasted = perf_counter() - start
    return total


def sum_tallies(tallies: Iterable[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        for step, seconds in tally.seconds.items():
            total.seconds.setdefault(step, []).extend(seconds)
        total.failures += tally.failures
        total.cycles += tally.cycles
        total.lasted = max(total.lasted, tally.lasted)
    return total


def print_tally(title: str, tally: Tally, faults: Sequence[str] = ()) -> None:
    say(f"\n{title}, {len(tally.failures)} failures")
    heads = "".join(f"{f'p{percent}':>9}" for percent in PERCENTILES)
    say(f"{'step (ms)':<24}{heads}{'max':>9}")
    for step, seconds in tally.seconds.items():
        ordered = sorted(seconds)
        percentiles = [ordered[min(len(ordered) * p // 100, len(ordered) - 1)] for p in PERCENTILES]
        cells = "".join(f"{value * 1000:9.1f}" for value in (*percentiles, ordered[-1]))
        say(f"{step:<24}{cells}")
    for line in (*tally.failures[:3], *faults[:10]):
        say(f"  {line}")


def main() -> None:
    options = parse_options(
        __doc__,
        **DATABASE,
        workers=(50, "at once"),
        hits=(10_000, "in one group; with --last, 400 make 10,000 accepts"),
        seconds=(30.0, "how long each part lasts"),
        thinking=(2.0, "the pause, in seconds"),
        last=(False, "ask for the last assignments of each HIT, and count"),
        **SERVER,
    )
    say(describe_machine())
    with fresh_site(
        options.database_url, processes=options.processes, threads=options.threads
    ) as site:
        start = perf_counter()
        per_hit = options.workers // 2 if options.last else 1
        group = publish(enrol_requester(), hits=options.hits, max_assignments=per_hit)
        sessions = sign_in_workers(options.workers)
        say(f"{options.hits:,} HITs published in {perf_counter() - start:.0f} s")
        if options.last:
            sys.exit(_ask_for_all(site, sessions, options.hits * per_hit))
        work(site, group, sessions, WARM_UP_SECONDS, 0.0)
        for thinking_seconds in (0.0, options.thinking):
            _measure(site, group, sessions, options.seconds, thinking_seconds)


def _measure(
    site: Site, group: str, sessions: list[str], seconds: float, thinking_seconds: float
) -> None:
    shares = [sessions[number::GENERATORS] for number in range(GENERATORS)]
    arguments = [(site, group, share, seconds, thinking_seconds) for share in shares]
    with multiprocessing.get_context("spawn").Pool(GENERATORS) as pool:
        total = sum_tallies(pool.starmap(work, arguments))
    pause = f"{thinking_seconds:g} s of thinking" if thinking_seconds else "no pauses"
    print_tally(
        f"{len(sessions)} workers, {pause}: {total.cycles} cycles in {total.lasted:.1f} s, "
        f"{total.cycles / total.lasted:.1f} cycles/s",
        total,
    )


def work(
    site: Site, group: str, sessions: list[str], seconds: float, thinking_seconds: float
) -> Tally:
    until = monotonic() + seconds

    def act(browser: Browser, tally: Tally) -> None:
        # So that the workers do not start in step.
        sleep(random.Random(browser.session_key).uniform(0, 3 * thinking_seconds))
        try:
            while monotonic() < until and not tally.failures:
                if not do_one_hit(browser, group, tally, thinking_seconds):
                    break
        except OSError as error:
            tally.failures.append(f"connection: {error}")

    return work_at_once(site, sessions, act)


def _ask_for_all(site: Site, sessions: list[str], n_places: int) -> int:
    """Let each worker ask for every HIT, in the same order; 1 if an accept went wrong."""
    from marketplace.models import Hit

    ids = Hit.objects.order_by("pk").values_list("public_id", flat=True)
    paths = [f"/worker/hits/{public_id}/accept/" for public_id in ids]

    def act(browser: Browser, tally: Tally) -> None:
        for path in paths:
            begun = perf_counter()
            try:
                answer = browser.post(path, {})
            except OSError as error:
                tally.failures.append(f"connection: {error}")
                continue
            tally.timed("accept", begun)
            if answer.status not in (GRANTED, GONE):
                tally.failures.append(f"{answer.status} {answer.text[:300]}")

    tally = work_at_once(site, sessions, act)
    (too_many, accepted), faults = _too_many(), site.faults()
    print_tally(
        f"{len(sessions)} workers ask for {len(paths)} HITs: {tally.n_steps:,} requests and "
        f"{accepted:,} accepted in {tally.lasted:.0f} s, "
        f"{tally.n_steps / tally.lasted:.1f} answers/s",
        tally,
        faults,
    )
    say(f"assignments too many: {too_many}\nerrors shown to a worker: {len(tally.failures)}")
    return 1 if too_many or tally.failures or faults or accepted != n_places else 0


def _too_many() -> tuple[int, int]:
    """How many assignments are beyond what their HIT asked for, or a worker's second of a
    HIT; and how many there are."""
    from marketplace.models import Assignment, Hit

    live = Counter(Assignment.objects.live().values_list("hit", flat=True))
    max_assignments = dict(Hit.objects.values_list("pk", "max_assignments"))
    beyond = sum(max(0, count - max_assignments[key]) for key, count in live.items())
    pairs = Counter(Assignment.objects.live().values_list("hit", "worker"))
    return beyond + sum(count - 1 for count in pairs.values()), live.total()


if __name__ == "__main__":
    main()
