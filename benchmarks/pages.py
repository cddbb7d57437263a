"""What each page of the console costs on a study of a million judgments.

    python -m benchmarks.pages
    python -m benchmarks.pages --items 250 --database-url postgres://postgres@127.0.0.1/benchmark

Every address of the console is visited; one that this file does not know is an error. For
each: milliseconds in the server until the last byte (of downloads until the first), SQL
statements, how many of them had been asked in the same request already, and kilobytes. Ends with
status 1 where a page is beyond the limits of the design.
"""

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any

from django.core import signing

from benchmarks.big_study import add_scores, analyze, build_study
from benchmarks.commands import DATABASE, parse_options, say
from benchmarks.marketplace_site import describe_machine, fresh_database

MOST_MS, MOST_STATEMENTS, MOST_REPEATS, MOST_KB = 300, 15, 2, 300
# Each of its tables goes through the study's items once, so that none is held in memory.
REPEATS_OF = {"download dataset.zip": 7}
# Sent by a form, or not of a study or a team; what they do is measured where it is done.
NOT_VISITED = {
    *("collect", "score", "label", "decision", "flag", "unflag", "stop", "again", "archive"),
    *(
        "login",
        "logout",
        "picture",
        "schema",
        "work",
        "report-file",
        "paper-file",
        "paper-datasheet",
        "restore",
        "letter-keys",
    ),
    *("publish", "launch-team", "launch-connect", "study-budget", "batch-change", "give"),
    *("batch-links", "batch-links-file", "batch-link-revoke"),
    *("rehearsal", "rehearsal-delete", "preview-link", "preview-link-revoke"),
    *("shared-preview", "shared-preview-page", "shared-preview-sent"),
    *(
        "recruit-draft",
        "recruit-act",
        "recruit-file",
        "recruit-settle",
        "recruit-put-away",
        "recruiter-connect",
        "recruiter-disconnect",
    ),
    *(
        "review-answer",
        "review-draft",
        "review-note",
        "review-appeal",
        "review-undo",
        "review-send",
    ),
    *("review-sending", "review-retry", "review-rules-draft", "review-reason-add", "review-clear"),
    "review-withdraw",
    *("review-reason-delete", "study-invite", "study-invitation-revoke", "study-member-role"),
    *("study-member-remove", "wage-floor", "connecting", "connect-site", "connect"),
    *("connection-close", "team-budget", "invite", "invitation-revoke", "member-role"),
    *("protocol-save", "protocol-yaml", "protocol-freeze", "protocol-begin", "protocol-discard"),
    *("try", "former-publish", "trial-sent", "new-study", "add-items", "add-scores"),
    *("scoring", "scoring-request", "scoring-confirm", "judge-connections"),
    "judge-connection-close",
    *("rename", "delete", "comment-add", "comment-edit", "comment-delete"),
    *("upload", "upload-progress", "upload-read", "upload-map", "upload-import", "upload-discard"),
    *("team-tokens", "team-token-revoke"),
    *("collections", "new-collection"),
    *("experiments", "new-experiment", "recommenders", "new-recommender"),
    *("upload-picture", "upload-item", "how-many", "how-many-curve", "how-many-pilot"),
    *("member-remove", "member-password", "new-team", "accept", "join", "join-anew", "invitation"),
}
TEAM_PAGES = ("team", "connections", "audit-log", "audit-log-file")
STREAMED = {"download", "label-set", "audit-log-file"}


@dataclass(frozen=True)
class Visit:
    name: str
    ms: float
    cpu_ms: float
    total_s: float
    statements: int
    most_often: int
    kb: float
    growth_mb: float

    @property
    def is_within(self) -> bool:
        is_page = self.name.partition(" ")[0] not in STREAMED
        return (
            self.ms <= MOST_MS
            and (not is_page or (self.statements <= MOST_STATEMENTS and self.kb <= MOST_KB))
            and self.most_often <= REPEATS_OF.get(self.name, MOST_REPEATS)
        )

    def __str__(self) -> str:
        mark = "" if self.is_within else "  <- beyond"
        return (
            f"{self.name:32} {self.ms:7.0f} {self.cpu_ms:7.0f} {self.statements:5}"
            f" {self.most_often:5} {self.kb:9.0f} {self.total_s:7.2f} {self.growth_mb:7.0f}{mark}"
        )


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def timed(what: str) -> Iterator[None]:
    began, before = time.perf_counter(), peak_mb()
    yield
    seconds = time.perf_counter() - began
    say(f"{what}: {seconds:.1f} s, peak memory {before:.0f} -> {peak_mb():.0f} MB")


def addresses(study: Any) -> dict[str, tuple[str, dict[str, Any]]]:
    """A name for each visit, the address's own name, and what stands in it."""
    from hits.pages.protocol import SALT

    item = study.items.order_by("position")[study.items.count() // 2]
    slug = {"slug": study.slug}
    pages = [
        *("study", "items", "launch", "answers", "agreement", "annotators", "disagreement"),
        *("results", "search", "adjudication", "labels", "reasons", "scores", "validation"),
        *("report", "paper", "paper-participants", "downloads", "members"),
        *(
            "review",
            "review-rules",
            "review-reasons",
            "review-messages",
            "protocol",
            "protocol-preview",
            "protocol-size",
        ),
        *("api-study-detail", "api-study-agreement", "api-study-validation", "api-study-disputes"),
    ]
    visits = {page: (page, dict(slug)) for page in pages}
    visits |= {name: (name, {}) for name in ("studies", "teams", "api-root", "api-study-list")}
    team = {"slug": study.team.slug}
    visits |= {name: (name, team) for name in TEAM_PAGES}
    visits["batch"] = ("batch", slug | {"batch_id": study.batches.get().pk})
    visits["item"] = ("item", slug | {"item_id": item.pk})
    visits["try-item"] = ("try-item", slug | {"item_id": item.pk})
    visits["trial-page"] = ("trial-page", {"token": signing.dumps(item.pk, salt=SALT)})
    charts = [("agreement-picture", one) for one in ("forest", "matrix", "volume", "speed")]
    charts += [
        ("validation-picture", one) for one in ("forest", "significance", "ranks", "scatter")
    ]
    charts += [("scores-picture", "bars-0-0")]
    for name, chart in charts:
        visits[f"{name} {chart}"] = (name, slug | {"chart": chart, "form": "json"})
    for table in ("comparisons", "worst", "ceilings"):
        visits[f"validation-table {table}"] = ("validation-table", slug | {"name": table})
    table = {"kind": "scores", "name": "all", "form": "json"}
    visits["study-table"] = ("study-table", slug | table)
    for form in ("csv", "json"):
        visits[f"label-set {form}"] = ("label-set", slug | {"version": 1, "form": form})
    tables = ("judgments", "submissions", "items", "scores")
    files = [f"{table}.{form}" for table in tables for form in ("csv", "jsonl", "parquet")]
    for name in (*files, "agreement.json", "dataset.zip"):
        visits[f"download {name}"] = ("download", slug | {"name": name})
    return visits


QUERIES = {
    "items, last page": ("items", {"page": "999999"}),
    "items, search": ("items", {"q": "item-0000"}),
    "items, by submissions": ("items", {"sort": "-n_submissions"}),
    "disagreement, last page": ("disagreement", {"page": "999999"}),
    "disagreement, by item": ("disagreement", {"sort": "item"}),
    "disagreement, search": ("disagreement", {"q": "item-0000"}),
    **{
        f"search, {what}": ("search", {"q": words})
        for what, words in {
            "an item": "item-0000",
            "a word of many": "the",
            "nothing": "zzzzzzzz",
            "an annotator": "annotator",
        }.items()
    },
    "studies, search": ("studies", {"q": "nothing"}),
    "validation, by system": ("validation", {"level": "system", "variants": "1"}),
    "adjudication, all disputes": ("adjudication", {"threshold": "0"}),
    "adjudication, skip 9,999": ("adjudication", {"skip": "9999"}),
}


def visit(client: Any, name: str, url: str, query: dict[str, str], repeat: int) -> Visit:
    from django.db import connection

    counts: Counter[tuple[str, str]] = Counter()

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        # A server keeps its cache in Redis.
        if '"cache"' not in sql:
            counts[sql, repr(params)] += 1
        return execute(sql, params, many, context)

    runs = []
    for _ in range(repeat):
        counts.clear()
        before = peak_mb()
        with connection.execute_wrapper(count):
            began, cpu = time.perf_counter(), time.process_time()
            answer = client.get(url, query)
            size, ms = 0, 0.0
            for part in answer:
                ms = ms or (time.perf_counter() - began) * 1000
                size += len(part)
            total = time.perf_counter() - began
            cpu_ms = (time.process_time() - cpu) * 1000
            answer.close()
        if answer.status_code not in (200, 202, 404):
            raise SystemExit(f"{url} answered {answer.status_code}")
        label = name if answer.status_code == 200 else f"{name} ({answer.status_code})"
        n, most, growth = counts.total(), max(counts.values(), default=0), peak_mb() - before
        runs.append(Visit(label, ms, cpu_ms, total, n, most, size / 1024, growth))
    middle = median(run.ms for run in runs)
    return min(runs, key=lambda run: abs(run.ms - middle))


def require_all_known(names: set[str]) -> None:
    from django.urls import URLResolver

    from console.urls import urlpatterns

    def every(patterns: Any) -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver) and pattern.namespace == "api":
                continue  # counted in tests/console/api
            if isinstance(pattern, URLResolver):
                yield from every(pattern.url_patterns)
            else:
                yield pattern.name

    unvisited = set(every(urlpatterns)) - names - NOT_VISITED
    # Collections and experiments hold no judgments of studies; few studies are of dialogues.
    others = (
        *("collection", "catalogue", "experiment", "recommender"),
        *("dialogues", "new-dialogue-study"),
    )
    if unknown := {name for name in unvisited if not name.startswith(others)}:
        raise SystemExit(f"benchmarks/pages.py does not visit {', '.join(sorted(unknown))}.")


def main() -> int:
    options = parse_options(
        __doc__,
        items=(25_000, "of the study"),
        annotators=(5, "of each item"),
        repeat=(3, "requests for each address"),
        one_waits_of=(50, "submissions, for a decision"),
        **DATABASE,
    )
    say(describe_machine())
    with fresh_database(options.database_url):
        return measure(options)


def _visits(client: Any, urls: dict[str, Any], repeat: int) -> Iterator[Visit]:
    say(
        f"\n{'':32} {'ms':>7} {'CPU ms':>7} {'SQL':>5} {'most':>5} {'KB':>9}"
        f" {'all, s':>7} {'+MB':>7}"
    )
    for name, (url, query) in urls.items():
        one = visit(client, name, url, query, 1 if name.partition(" ")[0] in STREAMED else repeat)
        say(one)
        yield one


def measure(options: argparse.Namespace) -> int:
    from django.test import Client
    from django.urls import reverse

    from accounts.models import User
    from accounts.teams import create_team
    from annotation.access import give_to_team
    from annotation.flags import store_evidence
    from annotation.label_sets import Rule, make_label_set
    from annotation.models import Judgment
    from annotation.result_kinds.base import find_study_kind
    from annotation.study_facts import AGREEMENT, RESULTS, SCORES, VALIDATION

    owner = User.objects.create_user("benchmark")
    with timed("building the study"):
        study = build_study(
            owner,
            n_items=options.items,
            n_annotators=options.annotators,
            one_waits_of=options.one_waits_of,
        )
    give_to_team(study=study, team=create_team(name="Benchmark", owner=owner), actor=owner)
    study.refresh_from_db()
    add_scores(study, ("bleu", "rougeL"))
    say(f"{Judgment.objects.count():,} judgments of {options.items:,} items")
    known = addresses(study)
    require_all_known({name for name, _ in known.values()})
    for result in (AGREEMENT, RESULTS, VALIDATION, SCORES):
        with timed(f"computing {result}"):
            find_study_kind(result).compute_now(study)
    with timed("labelling by the mean"):
        make_label_set(question=study.question(), rule=Rule("mean"))
    with timed("measuring flags"):
        store_evidence(study)
    analyze()
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(owner)
    urls = {
        name: (reverse(f"console:{to}", kwargs=parts), {}) for name, (to, parts) in known.items()
    }
    urls |= {name: (urls[of][0], query) for name, (of, query) in QUERIES.items()}
    client.get(urls["studies"][0])
    # Whoever opens the desk stands in the audit log, once an hour: docs/load.md counts that apart.
    client.get(urls["review"][0])
    visits = list(_visits(client, urls, options.repeat))
    beyond = [one for one in visits if not one.is_within]
    say(f"\n{len(visits)} visits, {len(beyond)} beyond the limits; peak {peak_mb():.0f} MB")
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
