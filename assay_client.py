"""A client of Assay's API, which returns DataFrames. It needs httpx2 and pandas, nothing else.

    from assay_client import Client

    with Client("https://assay.example.org", token="...") as client:
        study = client.study("style-transfer")
        frame = study.judgments()

What goes wrong is an AssayError:

AssayError
├── ServerUnreachable      nobody answered, however often it was asked
├── AnswerUnreadable       what answered is not Assay's API
├── FileRefused            a file cannot be imported; `faults` has all that is wrong, at its cell
├── JobUnsuccessful        a background job failed or was stopped; `job` says why
├── StillUnfinished        a job or a result was not there after the longest wait
├── LaunchHeld             a launch has faults, or its amount was not confirmed
└── RequestRefused         the server answered with an error: `status`, `code`, `errors`
    ├── InvalidRequest     what was sent is not valid; `field` names the first that is not (400)
    ├── NotSignedIn        no token, or one that is unknown, expired or revoked (401)
    ├── NotAllowed         the role, or the token's scopes, do not reach (403)
    ├── NotThere           no such thing, or none that one may see (404)
    ├── Conflict           it does not fit what is there (409, 422)
    ├── TooManyRequests    ask again later (429)
    └── ServerFailed       the server's own fault (5xx)
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, cast
from uuid import uuid4

import httpx2
import pandas as pd

__all__ = ["AssayError", "Batch", "Client", "Job", "LaunchPreview", "RequestRefused", "Study"]

Record = dict[str, Any]
Amount = Decimal | str | int
PREFIX = "/api/v1/"
ROWS_A_PAGE, ROWS_A_FRAME = 1000, 50_000
MOST_TRIES, MOST_SECONDS_BETWEEN = 6, 30.0
# What the server may answer better in a moment.
MOMENTARY = frozenset({429, 502, 503, 504})
IN_MEMORY_BYTES = 1 << 16
FILES = "files/"


class AssayError(Exception):
    """Something went wrong; the text says what.

    Attributes
    ----------
    code : str
        The kind of error, for programs; empty if its class says all.
    """

    def __init__(self, text: str, *, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class ServerUnreachable(AssayError):
    """Nobody answered, however often it was asked."""


class AnswerUnreadable(AssayError):
    """What answered is not Assay's API."""


class FileRefused(AssayError):
    """A file cannot be imported.

    Attributes
    ----------
    faults : list of dict
        What is wrong, each with `line`, `column` and `problem`.
    """

    def __init__(self, upload: Mapping[str, Any]) -> None:
        self.faults: list[Record] = list(upload["faults"])
        lines = [f"line {each['line']}: {each['problem']}" for each in self.faults]
        text = "\n".join(lines) or str((upload["job"] or {}).get("message", ""))
        super().__init__(f"{upload['file_name']} cannot be imported. {text}".strip())


class JobUnsuccessful(AssayError):
    """A background job failed or was stopped."""

    def __init__(self, job: Job) -> None:
        super().__init__(f"{job.title}: {job.state}. {job.message}".strip())
        self.job = job


class StillUnfinished(AssayError):
    """A job or a result was not there after the longest wait."""


class LaunchHeld(AssayError):
    """A launch has faults, or its amount was not confirmed.

    Attributes
    ----------
    code : str
        "faults", or "unconfirmed_amount".
    """


class NoResult(AssayError, LookupError):
    """What was asked for was not computed yet.

    Attributes
    ----------
    code : str
        "not_run", or "unfinished" where a run has begun.
    """


class RequestRefused(AssayError):
    """The server answered with an error.

    Attributes
    ----------
    status : int
        The HTTP status.
    code : str
        The kind of error, for programs.
    reason : str
        Which case of this kind it is, for programs; the code if there is only one.
    errors : dict of str to list of str
        Messages by the field that they are about.
    """

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        text = str(body.get("detail") or f"The server answered {status}.")
        super().__init__(text, code=str(body.get("code", "")))
        self.status = status
        self.reason = str(body.get("reason") or self.code)
        self.errors: dict[str, list[str]] = dict(body.get("errors") or {})

    @property
    def field(self) -> str:
        """The first field at fault; empty where it is none in particular."""
        return next((name for name in self.errors if name != "errors"), "")


class InvalidRequest(RequestRefused):
    """What was sent is not valid."""


class NotSignedIn(RequestRefused):
    """No token, or one that is unknown, expired or revoked."""


class NotAllowed(RequestRefused):
    """The role, or the token's scopes, do not reach."""


class NotThere(RequestRefused):
    """No such thing, or none that one may see."""


class Conflict(RequestRefused):
    """It does not fit what is there."""


class TooManyRequests(RequestRefused):
    """Ask again later."""


class ServerFailed(RequestRefused):
    """The server's own fault."""


BY_STATUS: dict[int, type[RequestRefused]] = {
    400: InvalidRequest,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotThere,
    409: Conflict,
    422: Conflict,
    429: TooManyRequests,
}


@dataclass(frozen=True)
class Job:
    """Work that the server does in the background."""

    id: int
    title: str
    state: str
    phase: str
    n_done: int
    n_total: int | None
    message: str
    is_unfinished: bool

    @classmethod
    def of(cls, record: Record) -> Self:
        return cls(**{name: record[name] for name in cls.__dataclass_fields__})

    def __str__(self) -> str:
        count = f" {self.n_done:,} of {self.n_total:,}" if self.n_total else ""
        return f"{self.title}:{count} {self.state if self.is_unfinished else self.message}"


def display_job(job: Job) -> None:
    """Show how far a job is, on one line of a terminal; nowhere else."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{job}" + ("" if job.is_unfinished else "\n"))
        sys.stderr.flush()


class Client:
    """A way to one Assay server.

    Parameters
    ----------
    url : str, optional
        Where the site is; without it, the environment's ASSAY_URL.
    token : str, optional
        A personal or a team's token; without it, the environment's ASSAY_TOKEN.
    longest_wait_seconds : float
        How long a job or a result is waited for.
    on_progress : callable
        Called with a `Job` each time it was asked for.
    transport : httpx2.BaseTransport, optional
        What carries requests, where not the network.

    Examples
    --------
    >>> client = Client("https://assay.example.org", token="...")  # doctest: +SKIP
    >>> client.studies()[["slug", "n_judgments"]]  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_seconds: float = 30,
        longest_wait_seconds: float = 3600,
        seconds_between: float = 0.5,
        on_progress: Callable[[Job], None] = display_job,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        url, token = url or os.environ.get("ASSAY_URL"), token or os.environ.get("ASSAY_TOKEN")
        if not url or not token:
            raise ValueError("Name a url and a token, or set ASSAY_URL and ASSAY_TOKEN.")
        self._http = httpx2.Client(
            base_url=url.rstrip("/") + PREFIX,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=timeout_seconds,
            transport=transport,
        )
        self.longest_wait_seconds, self.seconds_between = longest_wait_seconds, seconds_between
        self.on_progress = on_progress

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def me(self) -> Record:
        """As whom requests are made, and the token's scopes."""
        return cast(Record, self.get("me/"))

    def studies(self, **filters: Any) -> pd.DataFrame:
        """The studies that one has a role in, newest first.

        Parameters
        ----------
        **filters
            Such as `q`, words of the name; `kind`; `team`; `archived`.
        """
        return self.frame("studies/", **filters)

    def study(self, slug: str) -> Study:
        """A study by its short name; NotThere where one may not see it."""
        return Study(self, self.get(f"studies/{slug}/"))

    def collections(self, **filters: Any) -> pd.DataFrame:
        """The test collections of one's teams, by name; filtered by `q` or `team`."""
        return self.frame("collections/", **filters)

    def collection(self, slug: str) -> Collection:
        """A test collection by its short name; NotThere where one may not see it."""
        return Collection(self, self.get(f"collections/{slug}/"))

    def experiments(self, **filters: Any) -> pd.DataFrame:
        """The experiments with simulated users of one's teams, newest first; filtered by `team`."""
        return _with_times(self.frame("experiments/", **filters))

    def experiment(self, slug: str) -> Experiment:
        """An experiment by its short name; NotThere where one may not see it."""
        return Experiment(self, self.get(f"experiments/{slug}/"))

    def create_experiment(
        self, name: str, *, key: str | None = None, **settings: Any
    ) -> Experiment:
        """An experiment on a study's judgments or a collection's qrels; nothing is run yet.

        Parameters
        ----------
        name : str
            Of the experiment.
        key : str, optional
            The same request under the same key makes one experiment.
        **settings
            `study` with `label_set` or `round`, or `collection` with `qrels`; `catalogue`
            (`stand-in`, `drawn` or a number of `catalogues()`), `n_items`, `catalogue_seed`.
        """
        body = _plain({"name": name} | settings)
        return Experiment(self, self.send("POST", "experiments/", body, key=key))

    def catalogues(self, **filters: Any) -> pd.DataFrame:
        """What experiments may recommend from, newest first; filtered by `team`."""
        return _with_times(self.frame("catalogues/", **filters))

    def recommenders(self, **filters: Any) -> pd.DataFrame:
        """What was trained here, newest first; a run names one by its `spec`."""
        return _with_times(self.frame("recommenders/", **filters))

    def create_study(
        self,
        file: str | Path,
        *,
        title: str,
        team: str | None = None,
        template: str | None = None,
        columns: Mapping[str, str] | None = None,
        systems: Mapping[str, str] | None = None,
    ) -> Study:
        """A new study of the items in a file: CSV, TSV, Excel, JSON, JSON Lines, Parquet or zip.

        Parameters
        ----------
        team : str, optional
            The short name of whose it is.
        template : str, optional
            The protocol that it begins with.
        columns : mapping, optional
            What columns hold (`item`, `system`, `context`, `response`, `reference`, ...), by name;
            guessed without it.
        systems : mapping, optional
            The system that a column of responses is of, by the column's name.
        """
        fields = _known({"title": title, "team": team, "template": template})
        upload = self._import(Path(file), fields, "mapping", _mapping(columns, systems))
        return self.study(upload["study"])

    def import_labels(
        self,
        file: str | Path,
        *,
        title: str,
        team: str | None = None,
        tool: str | None = None,
        uses: Mapping[str, str] | None = None,
        questions: Mapping[str, Mapping[str, Any]] | None = None,
        **settings: Any,
    ) -> Study:
        """A new study of labels that were collected elsewhere.

        Parameters
        ----------
        tool : str, optional
            `label-studio`, `argilla`, `doccano`, `mturk` or `csv`; recognized without it.
        uses : mapping, optional
            What fields hold, by name; guessed without it.
        questions : mapping, optional
            By question: `level`, `low` and `high`, `wording`; found in the answers without it.
        **settings
            `answers`, the pattern of Mechanical Turk's answers; `keeps_names`.
        """
        fields = _known({"title": title, "team": team, "tool": tool, "content": "labels"})
        said = [_known({"uses": uses} | settings), _known({"questions": questions})]
        return self.study(self._import(Path(file), fields, "label-settings", *said)["study"])

    def _import(self, path: Path, fields: Record, settings: str, *said: Record) -> Record:
        with path.open("rb") as content:
            upload = self.send("POST", "uploads/", fields, files={"file": (path.name, content)})
        address = f"uploads/{upload['token']}/"
        upload = self._follow(address, upload)
        for each in filter(None, said):
            upload = self._follow(address, self.send("PUT", f"{address}{settings}/", each))
        upload = self._follow(address, self.send("POST", f"{address}import/"))
        if not upload["study"]:
            raise FileRefused(upload)
        return upload

    def _follow(self, address: str, upload: Record) -> Record:
        until = time.monotonic() + self.longest_wait_seconds
        while (job := upload["job"]) and job["is_unfinished"]:
            self.on_progress(Job.of(job))
            self.pause(until, self.seconds_between, f"{upload['file_name']} is not read yet.")
            upload = self.get(address)
        if job and job["state"] != "done":
            raise FileRefused(upload)
        return upload

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of an address; of what is still being computed, once it is there."""
        until = time.monotonic() + self.longest_wait_seconds
        while True:
            response = self._answer("GET", path, params=_known(query))
            if response.status_code != 202:
                return _json(response)
            self.pause(until, _seconds_in(response, 1.0), f"{path} is not computed yet.")

    def rows(self, path: str, **query: Any) -> Iterator[Record]:
        """The rows of a list, page by page as they are gone through."""
        params: Mapping[str, Any] = {"limit": ROWS_A_PAGE} | _known(query)
        while True:
            page = self.get(path, **params)
            yield from page["results"]
            if not page["next"]:
                return
            # Only its query: the token goes to no other server.
            params = dict(httpx2.URL(page["next"]).params)

    def frame(self, path: str, **query: Any) -> pd.DataFrame:
        """All rows of a list, as the API has them."""
        return pd.DataFrame.from_records(list(self.rows(path, **query)))

    def send(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        files: Any = None,
    ) -> Any:
        """The answer to a write, which is done once however often it is sent.

        Parameters
        ----------
        content : mapping, optional
            What is sent; amounts of money may be Decimal.
        key : str, optional
            The idempotency key. The same key with the same content is done once in 24 hours, also
            by another run of the program; without it, each call has a key of its own.
        """
        headers = {"Idempotency-Key": key or uuid4().hex}
        body: dict[str, Any] = {"json": _plain(content or {})}
        if files is not None:
            body = {"data": _plain(content or {}), "files": files}
        return _json(self._answer(method, path, headers=headers, **body))

    def wait(self, address: str, job: Record) -> Job:
        """The job once it is done; JobUnsuccessful where it failed or was stopped."""
        until = time.monotonic() + self.longest_wait_seconds
        current = Job.of(job)
        self.on_progress(current)
        while current.is_unfinished:
            self.pause(until, self.seconds_between, str(current))
            current = Job.of(self.get(f"{address}jobs/{current.id}/"))
            self.on_progress(current)
        if current.state != "done":
            raise JobUnsuccessful(current)
        return current

    def stream(self, path: str, **query: Any) -> Iterator[bytes]:
        """A file, bit by bit; of what is still being computed, once it is there."""
        until = time.monotonic() + self.longest_wait_seconds
        while True:
            with self._http.stream("GET", path, params=_known(query)) as response:
                if response.status_code == 200:
                    yield from response.iter_bytes(IN_MEMORY_BYTES)
                    return
                response.read()
            _raise_for(response)
            self.pause(until, _seconds_in(response, 1.0), f"{path} is not computed yet.")

    def _answer(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """The answer, asked for again where none came or the server has a bad moment: what is
        sent changes nothing the second time, for a read or by its key."""
        for number in range(1, MOST_TRIES + 1):
            seconds = min(self.seconds_between * 2**number, MOST_SECONDS_BETWEEN)
            try:
                response = self._http.request(method, path, **request)
            except httpx2.TransportError as error:
                if number == MOST_TRIES:
                    raise ServerUnreachable(
                        f"{self._http.base_url} does not answer: {error}"
                    ) from error
            else:
                if response.status_code not in MOMENTARY or number == MOST_TRIES:
                    _raise_for(response)
                    return response
                seconds = _seconds_in(response, seconds)
            time.sleep(seconds)
        raise AssertionError("unreachable")

    def pause(self, until: float, seconds: float, what: str) -> None:
        """Wait before asking again; StillUnfinished where that would be too late."""
        if time.monotonic() + seconds > until:
            raise StillUnfinished(what)
        time.sleep(seconds)


class Study:
    """A study: its tables as DataFrames, and all that is done with it."""

    def __init__(self, client: Client, record: Record) -> None:
        self.client, self.record = client, record
        self.slug, self.title = str(record["slug"]), str(record["title"])
        self.address = f"studies/{self.slug}/"

    def __repr__(self) -> str:
        counts = (f"{self.record[name]:,} {name[2:]}" for name in ("n_items", "n_judgments"))
        return f"<Study {self.slug}: {', '.join(counts)}>"

    def add_items(
        self,
        file: str | Path,
        *,
        columns: Mapping[str, str] | None = None,
        systems: Mapping[str, str] | None = None,
    ) -> Study:
        """Add the items of a file; the study as it is then."""
        self.client._import(Path(file), {"study": self.slug}, "mapping", _mapping(columns, systems))
        return self.client.study(self.slug)

    def add_scores(self, file: str | Path, **settings: Any) -> Study:
        """Add scores that were computed elsewhere; the study as it is then.

        Parameters
        ----------
        **settings
            `uses`, what columns hold, by name, guessed without it; `lower`, the metrics of which
            lower is better; `signature`.
        """
        self.client._import(
            Path(file), {"study": self.slug, "content": "scores"}, "score-settings", settings
        )
        return self.client.study(self.slug)

    def judgments(self) -> pd.DataFrame:
        """Every judgment but rejected ones: study, round, item, condition, candidate, system,
        question, annotator, value, position, seconds."""
        return self.table("judgments")

    def submissions(self) -> pd.DataFrame:
        """Every submission: who, when, how long, reason, comment, status and flag."""
        return self.table("submissions")

    def items(self) -> pd.DataFrame:
        """Every candidate with what its item shows."""
        return self.table("items")

    def labels(self) -> pd.DataFrame:
        """The labels of every label set."""
        return self.table("labels")

    def scores(self) -> pd.DataFrame:
        """Every score of an automatic metric, with its signature."""
        return self.table("scores")

    def table(self, name: str) -> pd.DataFrame:
        """A table of the study's downloads, read while it comes in.

        Parameters
        ----------
        name : str
            As the file is called on the Downloads page, without its ending.

        Returns
        -------
        DataFrame
            What is not there is missing (NaN, None, NaT); columns that end in `_at` hold times.
        """
        lines = _lines(self.client.stream(f"{self.address}{FILES}{name}.jsonl"))
        parts = [pd.DataFrame.from_records(rows) for rows in _stretches(lines, ROWS_A_FRAME)]
        return _with_times(pd.concat(parts, ignore_index=True) if parts else pd.DataFrame())

    def download(self, name: str, path: str | Path | None = None) -> Path:
        """Write one of the study's files, such as `judgments.parquet`, while it comes in.

        Where it breaks off, nothing is left under the name.
        """
        target = Path(path or f"{self.slug}-{name}")
        partial = target.with_name(f"{target.name}.part")
        with partial.open("wb") as file:
            for chunk in self.client.stream(f"{self.address}{FILES}{name}"):
                file.write(chunk)
        return partial.replace(target)

    def agreement(self) -> pd.DataFrame:
        """Krippendorff's alpha by question and condition, with its interval; where undefined, NaN
        with a reason. Waits until it is computed."""
        return pd.DataFrame.from_records(self.client.get(f"{self.address}agreement/"))

    def position_effects(self) -> pd.DataFrame:
        """What being shown first adds to answers, compared with being shown last: by question, of
        all annotators (`annotator` is empty) and of each. Waits until it is computed."""
        return pd.DataFrame.from_records(self.client.get(f"{self.address}position-effects/"))

    def results(self, table: str = "systems", *, scope: str | None = "all") -> pd.DataFrame:
        """What people's judgments say by themselves, as the server computed it; waits for it.

        Parameters
        ----------
        table : str
            `systems`, `pairs`, `questions` (with the answer of each in a sentence),
            `distributions` or `lowest`.
        scope : str, optional
            Of systems and pairs: `all`, `unflagged`, `condition`, `protocol`; None for each.
        """
        frame = pd.DataFrame.from_records(self.client.get(f"{self.address}results/")[table])
        if scope is not None and "scope" in frame:
            frame = frame[frame["scope"] == scope].reset_index(drop=True)
        return frame

    def systems(self, scope: str | None = "all") -> pd.DataFrame:
        """Each system by question, the best first: `mean` over items with `ci_low` and `ci_high`,
        the ranks that no test rules out, `n_items`, `n_annotators`, `n_ratings`."""
        return self.results("systems", scope=scope)

    def comparisons(self, scope: str | None = "all") -> pd.DataFrame:
        """Systems in pairs, compared within items: `delta` is `a` less `b`, with its interval,
        `p_adjusted`, and whether that decides (`is_decided`)."""
        return self.results("pairs", scope=scope)

    def correlations(self, **equal: str) -> pd.DataFrame:
        """Every metric against every question, at every level, with intervals.

        Parameters
        ----------
        **equal
            Values of columns to choose rows by, such as `level="system"`.
        """
        frame = pd.DataFrame.from_records(self.client.get(f"{self.address}validation/"))
        for column, value in equal.items():
            frame = frame[frame[column] == value]
        return frame.reset_index(drop=True)

    def best_metrics(self, **choice: str) -> Record:
        """Which metrics agree with people best: `answer` and `explanation` in sentences; `top` and
        `behind`; the `ceiling`. Chosen by `question`, `level`, `coefficient`, `condition`."""
        return cast(Record, self.client.get(f"{self.address}validation/best/", **choice))

    def validation(self, kind: str, **equal: str) -> pd.DataFrame:
        """Every record of a kind: `comparisons`, `ceilings`, `systems`, `disagreements`, `worst`,
        `sensitivity`, `planning`; of one `question`."""
        answer = self.client.get(f"{self.address}validation/{kind}/", **equal)
        return pd.DataFrame.from_records(answer["rows"])

    def wait(self, job: Record) -> Job:
        """A job of the study once it is done."""
        return self.client.wait(self.address, job)

    # Scoring

    def metrics(self) -> pd.DataFrame:
        """The metrics that one may score by, with the settings of each."""
        return pd.DataFrame.from_records(self.client.get(f"{self.address}metrics/"))

    def estimate_scoring(self, metric: str, **settings: Any) -> Record:
        """What scoring would take; nothing is scored before `score`, though a judge may be asked
        a little, once, for what it can do. It needs a `connection`, a `model`, prices and a cap."""
        content = {"metric": metric, "settings": _plain(settings)}
        record = self.client.send("POST", f"{self.address}scoring-requests/", content)
        self.wait(record["job"])
        return cast(Record, self.client.get(f"{self.address}scoring-requests/{record['id']}/"))

    def score(self, request: Record, *, key: str | None = None) -> Job:
        """Score as was estimated, within its caps, and wait until that is done."""
        return self.wait(
            self.client.send(
                "POST", f"{self.address}scoring-requests/{request['id']}/confirm/", key=key
            )["job"]
        )

    # Adjudicating

    def disputes(self, **filters: Any) -> pd.DataFrame:
        """The next 50 candidates that annotators do not agree on, by `question`, `round`,
        `threshold`; after `skip` of them."""
        queue = self.client.get(f"{self.address}disputes/", **filters)
        return pd.DataFrame.from_records(queue["disputes"])

    def adjudicate(self, candidate_id: int, question: str, value: float, **more: Any) -> Record:
        """Decide what a candidate's value is; `note` says why, `round` names another than 1."""
        content = {"candidate_id": int(candidate_id), "question": question, "value": float(value)}
        return cast(
            Record, self.client.send("POST", f"{self.address}adjudications/", content | more)
        )

    # Asking

    def protocol(self, number: int | None = None) -> Record:
        """A version of what annotators are asked, or the newest: `document`, `yaml`, `faults`."""
        if number is None:
            number = next(self.client.rows(f"{self.address}protocols/", limit=1))["number"]
        return cast(Record, self.client.get(f"{self.address}protocols/{number}/"))

    def check_protocol(self, **source: Any) -> Record:
        """All that is wrong with a `document`, or the text of a file, `yaml`."""
        return cast(Record, self.client.send("POST", f"{self.address}protocols/check/", source))

    def save_protocol(self, **source: Any) -> Record:
        """Store a draft: a `document`, `yaml`, a `template` or a published `version`."""
        return cast(Record, self.client.send("PUT", f"{self.address}protocols/draft/", source))

    def publish_protocol(self) -> Record:
        """Make the draft a version for good."""
        return cast(Record, self.client.send("POST", f"{self.address}protocols/publish/"))

    # Launching

    def preview_launch(self, **terms: Any) -> LaunchPreview:
        """What a launch would cost to the cent, and everything that speaks against it.

        Parameters
        ----------
        **terms
            Of the Launch page, such as `n_items`, `reward_usd`, `max_assignments`; what is left
            out is as the page begins with. Waits until pages and account were looked at.
        """
        while True:
            record = self.client.send("POST", f"{self.address}launch/preview/", terms)
            if record["job"] is None or not record["is_pending"]:
                return LaunchPreview(record)
            self.wait(record["job"])

    def launch(
        self, preview: LaunchPreview, *, confirm_usd: Amount | None = None, key: str | None = None
    ) -> Batch:
        """Launch what was previewed, and wait until it is published.

        Parameters
        ----------
        preview : LaunchPreview
            What is launched; at another price than in it, nothing is.
        confirm_usd : Decimal, str or int, optional
            The whole amount, where it is spent elsewhere than on the server's own marketplace.
        key : str, optional
            An idempotency key of one's own; the same preview is one batch without it too.
        """
        if preview.faults:
            raise LaunchHeld(" ".join(preview.faults), code="faults")
        if preview.needs_amount and confirm_usd is None:
            raise LaunchHeld(
                f"This spends money elsewhere: pass confirm_usd={str(preview.total_usd)!r}.",
                code="unconfirmed_amount",
            )
        content = preview.terms | {"total_usd": preview.total_usd}
        if confirm_usd is not None:
            content["confirm_usd"] = confirm_usd
        record = self.client.send("POST", f"{self.address}batches/", content, key=key)
        self._finish_publication()
        return self.batch(record["id"])

    def _finish_publication(self) -> None:
        for job in self.client.rows(f"{self.address}jobs/"):
            if job["kind"] == "publish" and job["is_unfinished"]:
                self.wait(job)

    def batches(self) -> pd.DataFrame:
        """What was launched, the first first."""
        return self.client.frame(f"{self.address}batches/")

    def batch(self, batch_id: int) -> Batch:
        """A batch in numbers."""
        return Batch(self, self.client.get(f"{self.address}batches/{batch_id}/"))

    def collect(self) -> Job:
        """Fetch what came in; done when this returns."""
        return self.wait(self.client.send("POST", f"{self.address}collect/"))

    # Reviewing

    def assignments(self, show: str = "waiting") -> pd.DataFrame:
        """What is `waiting` for a decision, `rejected` or `approved`; flagged work first."""
        return _with_times(self.client.frame(f"{self.address}assignments/", show=show))

    def decide(
        self,
        assignments: Iterable[int],
        action: str,
        *,
        text: str = "",
        subject: str = "",
        amount_usd: Amount | None = None,
    ) -> Record:
        """Prepare one decision on some assignments; nothing leaves before `send`.

        Parameters
        ----------
        assignments : iterable of int
            Their `id`s.
        action : str
            `approve`, `reject`, `part_pay`, `override`, `bonus`, `message`, `block` or `unblock`.
        text : str
            Reason, feedback or message for the worker; of a block, for the team.
        amount_usd : Decimal, str or int, optional
            Of a bonus or a part of the reward.

        Returns
        -------
        dict
            All that is prepared and not sent, with what sending it costs.
        """
        keys = [int(key) for key in assignments]
        content: Record = {"action": action, "text": text, "subject": subject}
        content["amount_usd"] = amount_usd
        summary: Record = self.drafts()
        for start in range(0, len(keys), ROWS_A_PAGE):
            part = {"assignments": keys[start : start + ROWS_A_PAGE]}
            summary = self.client.send("POST", f"{self.address}drafts/", content | part)
        return summary

    def preview_rule(self, rule: str, **numbers: Any) -> Record:
        """Which assignments a rule takes (`approve-unflagged`, `reject-fast`, `bonus-workers`)."""
        content = {"rule": rule} | numbers
        return cast(
            Record, self.client.send("POST", f"{self.address}drafts/rules/preview/", content)
        )

    def decide_by_rule(self, rule: str, assignments: Iterable[int], **numbers: Any) -> Record:
        """Prepare a rule's decision on what its preview listed."""
        content = {"rule": rule, "assignments": [int(key) for key in assignments]} | numbers
        return cast(Record, self.client.send("POST", f"{self.address}drafts/rules/", content))

    def drafts(self) -> Record:
        """What you decided and did not send, with what sending it costs."""
        return cast(Record, self.client.get(f"{self.address}drafts/"))

    def undo(self, assignment: int | None = None) -> Record:
        """Take back what you decided last, about one assignment or at all."""
        content = {} if assignment is None else {"assignment": int(assignment)}
        return cast(Record, self.client.send("POST", f"{self.address}drafts/undo/", content))

    def send(
        self, summary: Record | None = None, *, confirm_usd: Amount | None = None, key: str = ""
    ) -> Record:
        """Send what you decided, and wait until the marketplace has it.

        Parameters
        ----------
        summary : dict, optional
            What `decide` or `drafts` returned: exactly these decisions are sent, or none. Without
            it, all that is prepared now.
        confirm_usd : Decimal, str or int, optional
            The summary's `elsewhere_usd`, where it is spent elsewhere than on this site.

        Returns
        -------
        dict
            `n_recorded`; `problems`, of what came too late; `message`, what was sent.
        """
        content: Record = {
            "digest": (summary or self.drafts())["digest"],
            "confirm_usd": confirm_usd,
        }
        result = self.client.send("POST", f"{self.address}drafts/send/", content, key=key or None)
        job = result.pop("job")
        return dict(result) | {"message": self.wait(job).message if job else ""}

    def appeals(self) -> pd.DataFrame:
        """What workers said to rejections, unanswered ones first."""
        return self.client.frame(f"{self.address}appeals/")

    def answer_appeal(self, assignment: int, answer: str) -> Job:
        """Answer an appeal; to grant it, decide `override` as well."""
        return self.wait(
            self.client.send(
                "POST", f"{self.address}appeals/{int(assignment)}/answer/", {"answer": answer}
            )
        )


class LaunchPreview:
    """What launching on these terms would do and cost."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.terms: Record = record["terms"]
        self.n_items = int(record["n_items"])
        self.needs_amount = bool(record["needs_amount"])
        self.total_usd = Decimal(record["cost"]["total_usd"] if record["cost"] else 0)
        self.hourly_usd = Decimal(record["wage"]["typical_usd"])

    def __repr__(self) -> str:
        faults = f", {len(self.faults)} faults" if self.faults else ""
        return f"<LaunchPreview {self.n_items} items, ${self.total_usd:.2f}{faults}>"

    @property
    def faults(self) -> list[str]:
        """What holds the launch."""
        return self._messages("fault")

    @property
    def warnings(self) -> list[str]:
        """What speaks against the launch, and does not hold it."""
        return self._messages("warning")

    def _messages(self, level: str) -> list[str]:
        return [each["message"] for each in self.record["findings"] if each["level"] == level]


class Batch:
    """A batch in numbers; `record` has all of them, with both ledgers."""

    def __init__(self, study: Study, record: Record) -> None:
        self.study, self.record = study, record
        self.id = int(record["batch"]["id"])
        self.address = f"{study.address}batches/{self.id}/"

    def __repr__(self) -> str:
        batch = self.record["batch"]
        return f"<Batch {self.id}: {batch['n_hits']} HITs, {batch['n_collected']} collected>"

    @property
    def is_over(self) -> bool:
        """Whether every assignment came in, or nobody can accept one any more."""
        batch = self.record["batch"]
        expires_at = datetime.fromisoformat(batch["expires_at"])
        is_complete = batch["n_collected"] >= self.record["n_assignments"]
        return is_complete or expires_at <= datetime.now(expires_at.tzinfo)

    def wait_for_answers(self, *, seconds_between: float = 30) -> Batch:
        """Collect again and again until the batch is over; the batch as it is then."""
        client = self.study.client
        until = time.monotonic() + client.longest_wait_seconds
        while True:
            self.study.collect()
            current = self.study.batch(self.id)
            if current.is_over:
                return current
            client.pause(until, seconds_between, f"{current} is not over yet.")

    def preview(self, change: str, **numbers: Any) -> Record:
        """What `more`, `repost`, `extend`, `expire` or `close` would do and cost."""
        address = f"{self.address}{change}/preview/"
        return cast(Record, self.study.client.send("POST", address, numbers))

    def change(
        self, change: str, *, confirm_usd: Amount | None = None, key: str = "", **numbers: Any
    ) -> Job:
        """Make a change at the cost that its preview says, and wait until it is made.

        Parameters
        ----------
        change : str
            `more` (with `n_more`), `repost` or `extend` (with `expires_at`), `expire`, `close`.
        confirm_usd : Decimal, str or int, optional
            What it costs, where it is spent elsewhere than on this site.
        """
        preview = self.preview(change, **numbers)
        names = ("n_added", "expected_assignments", "expected_usd")
        content = numbers | {name: preview[name] for name in names}
        if confirm_usd is not None:
            content["confirm_usd"] = confirm_usd
        client = self.study.client
        return self.study.wait(client.send("POST", f"{self.address}{change}/", content, key=key))


class Collection:
    """A test collection: its files, and what was computed of them."""

    def __init__(self, client: Client, record: Record) -> None:
        self.client, self.record = client, record
        self.slug: str = record["slug"]
        self.address = f"collections/{self.slug}/"

    def __repr__(self) -> str:
        return f"<Collection {self.slug}>"

    def files(self, kind: str | None = None) -> pd.DataFrame:
        """Its files: `run`, `qrels`, `assessors`, `embeddings`, `catalogue`."""
        return _with_times(self.client.frame(f"{self.address}files/", kind=kind))

    def results(self, kind: str = "evaluations") -> pd.DataFrame:
        """What was computed, newest first: `evaluations`, `comparisons`, `reuse`, `machines`,
        `audits`, `pools`, `reports`, `targets`."""
        return _with_times(self.client.frame(f"{self.address}{kind}/"))

    def result(self, kind: str, number: int | None = None) -> Record:
        """A result with its `answer`, `tables` and `notes`; the newest without a number."""
        if number is None:
            newest = self.client.get(f"{self.address}{kind}/", limit=1)["results"]
            if not newest:
                raise NoResult(f"{self.slug} has no {kind} yet.", code="not_run")
            number = newest[0]["number"]
        return cast(Record, self.client.get(f"{self.address}{kind}/{number}/"))

    def table(self, kind: str, name: str, number: int | None = None) -> pd.DataFrame:
        """A table of a result, such as `results` or `comparisons` of an evaluation."""
        return pd.DataFrame.from_records(self.result(kind, number)["tables"][name])

    def topics(self, number: int | None = None) -> pd.DataFrame:
        """Every run's value of every measure in every topic of an evaluation."""
        if number is None:
            number = self.result("evaluations")["number"]
        return self.client.frame(f"{self.address}evaluations/{number}/topics/")

    def evaluate(self, qrels: str, *, key: str | None = None, **settings: Any) -> Job:
        """Runs evaluated against qrels, waited for.

        Parameters
        ----------
        qrels : str
            The name of a file.
        **settings
            `runs`, `measures`, `primary`, `missing`, `ties`, `test`, `confidence`, `seed`, ...
        """
        job = self.client.send(
            "POST", f"{self.address}evaluations/", _plain({"qrels": qrels} | settings), key=key
        )
        return self.client.wait(self.address, job)

    def draw_targets(self, n: int, predictor: str, source: str, **settings: Any) -> Job:
        """Targets drawn from groups of a predictor's values over a run or embeddings, waited for.

        `settings` are `strata`, `allocation`, `seed` and, against drawing twice, `key`.
        """
        key = settings.pop("key", None)
        body = _plain({"n": n, "predictor": predictor, "source": source} | settings)
        job = self.client.send("POST", f"{self.address}targets/", body, key=key)
        return self.client.wait(self.address, job)

    def drawn_targets(self, number: int | None = None) -> pd.DataFrame:
        """The targets of a sample, with the probability of each; of the newest without a number."""
        if number is None:
            number = self.result("targets")["number"]
        return self.client.frame(f"{self.address}targets/{number}/drawn/")


class Experiment:
    """Judged targets and a catalogue, run with simulated users by any settings."""

    def __init__(self, client: Client, record: Record) -> None:
        self.client, self.record = client, record
        self.slug: str = record["slug"]
        self.address = f"experiments/{self.slug}/runs/"

    def __repr__(self) -> str:
        return f"<Experiment {self.slug}>"

    def runs(self) -> pd.DataFrame:
        """Its runs, newest first."""
        return _with_times(self.client.frame(self.address))

    def run(self, *, key: str | None = None, **settings: Any) -> Record:
        """A run, waited for; by the same settings as before it is the run there is.

        Parameters
        ----------
        **settings
            `users` as `simulate --user` names them, the first `base`; `recommenders`, `measures`,
            `n_turns`, `seeds`, `mode`, `qrels`, `relevant_from`, `carry`, `repeats`.

        Raises
        ------
        JobUnsuccessful
            If it was stopped or failed; the same call goes on where it was left.
        StillUnfinished
            If it takes longer than the client waits; it goes on meanwhile.
        """
        client = self.client
        run: Record = client.send("POST", self.address, _plain(settings), key=key)
        until = time.monotonic() + client.longest_wait_seconds
        while True:
            current = self._as_job(run)
            client.on_progress(current)
            if run["is_finished"]:
                return run
            if not current.is_unfinished:
                raise JobUnsuccessful(current)
            client.pause(until, client.seconds_between, str(current))
            run = client.get(f"{self.address}{run['number']}/")

    def _as_job(self, run: Record) -> Job:
        # A run is many jobs; a reader waits for one.
        state = "done" if run["is_finished"] else "running" if run["is_under_way"] else "stopped"
        return Job(
            id=run["number"],
            title=f"Run {run['number']} of {self.slug}",
            state="failed" if run["problems"] else state,
            phase="",
            n_done=run["n_done"],
            n_total=run["n_total"] or None,
            message=" ".join(run["problems"]) or run["answer"],
            is_unfinished=run["is_under_way"],
        )

    def result(self, number: int | None = None) -> Record:
        """A run with its `answer`, `tables` and `notes`; the newest without a number."""
        return cast(Record, self.client.get(f"{self.address}{self._number(number)}/"))

    def table(self, name: str, number: int | None = None) -> pd.DataFrame:
        """A table of a finished run: `results`, `comparisons`, `causes`, `switches`,
        `improvements`."""
        run = self.result(number)
        if not run["is_finished"]:
            raise NoResult(
                f"Run {run['number']} of {self.slug} is not finished yet.", code="unfinished"
            )
        return pd.DataFrame.from_records(run["tables"][name])

    def turns(self, number: int | None = None) -> pd.DataFrame:
        """Every mean at every turn, with its interval."""
        return self._rows("turns", number)

    def targets(self, number: int | None = None) -> pd.DataFrame:
        """Every target's value of every measure at the last turn."""
        return self._rows("targets", number)

    def choices(self, number: int | None = None) -> pd.DataFrame:
        """Every mean under other choices of qrels, carrying, turn, share judged and user."""
        return self._rows("choices", number)

    def _rows(self, name: str, number: int | None) -> pd.DataFrame:
        return self.client.frame(f"{self.address}{self._number(number)}/{name}/")

    def _number(self, number: int | None) -> int:
        if number is not None:
            return number
        newest = self.client.get(self.address, limit=1)["results"]
        if not newest:
            raise NoResult(f"{self.slug} was not run yet.", code="not_run")
        return int(newest[0]["number"])


def _with_times(frame: pd.DataFrame) -> pd.DataFrame:
    for column in frame.columns:
        if str(column).endswith("_at"):
            frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
    return frame


def _mapping(columns: Mapping[str, str] | None, systems: Mapping[str, str] | None) -> Record:
    return {} if columns is None else {"uses": dict(columns), "systems": dict(systems or {})}


def _known(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _plain(content: Mapping[str, Any]) -> Record:
    return {name: _plain_value(value) for name, value in content.items()}


def _plain_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain_value(each) for each in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise AnswerUnreadable(f"{response.url} did not answer in JSON.") from None


def _raise_for(response: httpx2.Response) -> None:
    """RequestRefused, of the class of its status, where the server answered with an error."""
    if response.status_code < 400:
        if response.is_redirect:
            raise AnswerUnreadable(f"{response.url} leads elsewhere; name the site's own address.")
        return
    try:
        body = response.json()
    except ValueError:
        body = {}
    status = response.status_code
    usual = ServerFailed if status >= 500 else RequestRefused
    raise BY_STATUS.get(status, usual)(status, body if isinstance(body, dict) else {})


def _seconds_in(response: httpx2.Response, usual: float) -> float:
    # It may not hold a program up for longer than a minute.
    text = response.headers.get("Retry-After", "")
    return min(float(text), 60.0) if text.isdecimal() else usual


def _lines(chunks: Iterable[bytes]) -> Iterator[Record]:
    """Objects of JSON Lines, whose ends are anywhere in the chunks."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from map(json.loads, filter(None, whole))
    if rest.strip():
        yield json.loads(rest)


def _stretches(rows: Iterable[Record], size: int) -> Iterator[list[Record]]:
    stretch: list[Record] = []
    for row in rows:
        stretch.append(row)
        if len(stretch) == size:
            yield stretch
            stretch = []
    if stretch:
        yield stretch
