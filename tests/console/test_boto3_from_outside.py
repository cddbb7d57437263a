"""A script that knows nothing of Assay: boto3, an endpoint and a key in the environment."""

import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest
import requests

from hits.crowd.pages import Page
from hits.crowd.worker import CrowdWorker
from hits.enrolment import enrol_requester

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = """<HTMLQuestion
 xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2011-11-11/HTMLQuestion.xsd">
<HTMLContent><![CDATA[<!doctype html><html><body><form method="post">
<input name="opinion"></form></body></html>]]></HTMLContent>
<FrameHeight>0</FrameHeight></HTMLQuestion>"""

CREATE = """
import boto3, json, sys
mturk = boto3.client("mturk")
hit = mturk.create_hit(
    Title="An opinion", Description="Give one.", Reward="0.05", MaxAssignments=1,
    AssignmentDurationInSeconds=600, LifetimeInSeconds=3600, Question=sys.argv[1],
)
balance = mturk.get_account_balance()["AvailableBalance"]
print(json.dumps({"hit": hit["HIT"]["HITId"], "balance": balance}))
"""

READ = """
import boto3, json, sys
pages = boto3.client("mturk").get_paginator("list_assignments_for_hit").paginate(HITId=sys.argv[1])
print(json.dumps([a["Answer"] for page in pages for a in page["Assignments"]]))
"""


def run_outside(script, argument, live_server, key, folder):
    """Run a script in an empty folder, with nothing of the project on its path."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "AWS_ENDPOINT_URL_MTURK": f"{live_server.url}/requester",
        "AWS_ACCESS_KEY_ID": key.access_key_id,
        "AWS_SECRET_ACCESS_KEY": key.secret_access_key,
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    process = subprocess.run(
        [sys.executable, "-I", "-c", script, argument],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.slow
def test_it_creates_a_hit_and_reads_its_assignments(live_server, tmp_path):
    key = enrol_requester(site_url=live_server.url, name="Outsider", test_funds_usd=Decimal(10))
    created_hit = run_outside(CREATE, QUESTION, live_server, key, tmp_path)
    assert created_hit["balance"] == "9.95"
    worker = CrowdWorker(live_server.url, "ada", secret="of the test")
    worker.arrive()
    preview = worker.session.get(f"{live_server.url}/worker/hits/{created_hit['hit']}/")
    accept = Page(preview.text).form("accept")
    work = worker.session.post(live_server.url + accept.action, accept.fields)
    assignment = work.url.rstrip("/").split("/")[-1]
    form = {"assignmentId": assignment, "opinion": "a good one"}
    receipt = requests.post(f"{live_server.url}/mturk/externalSubmit", form, timeout=60)
    assert receipt.status_code == 200
    [answer] = run_outside(READ, created_hit["hit"], live_server, key, tmp_path)
    assert "<QuestionIdentifier>opinion</QuestionIdentifier>" in answer
    assert "<FreeText>a good one</FreeText>" in answer
