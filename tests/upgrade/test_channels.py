"""Channels of earlier versions become studies of recruiters: links, codes and work stay."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from tests.upgrade.databases import DUMPS, manage, restored

# Of a form that no release had: `make long` runs it, on both databases.
pytestmark = pytest.mark.long
PID = "5b96601d3400a939f7c18c1f"
BEFORE = "0013"
REPORT = """
import json
from encryption import decrypt
from marketplace.models import *
from marketplace.recruiting.arrivals import recognise
from marketplace.recruiting.participants import find_participant
from marketplace.money.reconciliation import audit
panel, lab = (RecruitedStudy.objects.get(token=token) for token in ("panel", "lab"))
session = Session.objects.get()
print(json.dumps({
    "studies": [(s.connection.kind, s.connection.name, s.state, s.items_per_session)
                for s in (panel, lab)],
    "codes": [s.codes.get(outcome="completed").code for s in (panel, lab)],
    "ways_back": sorted(set(panel.codes.values_list("redirect_url", flat=True))),
    "n_codes": [s.codes.values("code").distinct().count() for s in (panel, lab)],
    "session": [session.submission_id, session.state, session.outcome, session.code],
    "person": decrypt(session.encrypted_participant_id),
    "items": session.items.count(),
    "is_recognised": find_participant(panel.connection, PID_).worker == session.worker,
    "invitation": Invitation.objects.get().study.token,
    "payer": [panel.hit_type.paid_by, session.worker.paid_by],
    "visit": recognise("panel", {"PROLIFIC_PID": "p2", "SESSION_ID": "x2"}).external_worker_id,
    "audit": audit(),
}))
""".replace("PID_", repr(PID))


def execute(url: str, statement: str, *values: Any) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
            return database.execute(statement.replace("%s", "?"), values).fetchall()
    with psycopg.connect(url, autocommit=True) as database:
        cursor = database.execute(statement, values)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def insert(url: str, table: str, **values: Any) -> int:
    columns, marks = ", ".join(values), ", ".join(["%s"] * len(values))
    execute(url, f"INSERT INTO marketplace_{table} ({columns}) VALUES ({marks})", *values.values())
    return int(execute(url, f"SELECT MAX(id) FROM marketplace_{table}")[0][0])


def test_channels_become_studies(tmp_path: Path) -> None:
    with restored(DUMPS / f"0.1.{connection.vendor}.sql.gz", tmp_path) as url:
        manage(url, "migrate", "marketplace", BEFORE, "--verbosity", "0")
        worker, hit_type, requester = execute(
            url,
            "SELECT a.worker_id, h.hit_type_id, h.requester_id FROM marketplace_assignment a "
            "JOIN marketplace_hit h ON h.id = a.hit_id WHERE a.status = 'Approved' LIMIT 1",
        )[0]
        n_assignments = execute(
            url,
            "SELECT COUNT(*) FROM marketplace_assignment a JOIN marketplace_hit h "
            "ON h.id = a.hit_id WHERE a.worker_id = %s AND h.hit_type_id = %s",
            worker,
            hit_type,
        )[0][0]
        at = "2026-11-01 12:00:00+00:00"
        channel = {
            "requester_id": requester,
            "hit_type_id": hit_type,
            "study_parameter": "",
            "redirect_url": "https://panel.example/{code}",
            "is_active": True,
            "created_at": at,
        }
        panel = insert(
            url,
            "channel",
            token="panel",
            name="P",
            kind="panel",
            panel="Prolific",
            worker_parameter="PROLIFIC_PID",
            session_parameter="SESSION_ID",
            completion_code="C123",
            **channel,
        )
        none = {"panel": "", "worker_parameter": "", "session_parameter": ""}
        lab = insert(
            url,
            "channel",
            **channel
            | none
            | {"token": "lab", "name": "L", "kind": "invite", "completion_code": ""}
            | {"is_active": False},
        )
        insert(url, "invitation", channel_id=lab, token="t", label="P 1", created_at=at)
        person = {"requester_id": requester, "panel": "Prolific", "worker_id": worker}
        insert(url, "panelworker", external_id=PID, **person)
        arrival = {"channel_id": panel, "worker_id": worker, "external_worker_id": PID}
        for session_id in ("x0", "x1"):
            insert(url, "arrival", **arrival, study_id="s", session_id=session_id, arrived_at=at)
        manage(url, "migrate", "--verbosity", "0")
        report = json.loads(manage(url, "shell", "--no-imports", "-c", REPORT))
    assert report["studies"] == [
        ["panel", "Prolific", "active", 1],
        ["invite", "Own lab", "stopped", 1],
    ]
    assert report["codes"][0] == "C123"
    assert report["ways_back"] == ["https://panel.example/{code}"]
    assert report["n_codes"] == [7, 7]
    assert report["session"] == ["x1", "finished", "completed", "C123"]
    assert report["person"] == PID
    assert report["items"] == n_assignments
    assert report["is_recognised"]
    assert report["invitation"] == "lab"
    assert report["payer"] == ["ledger", "ledger"]
    assert report["visit"] == "p2"
    assert report["audit"] == []
