import re
from hashlib import sha256
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape

from accounts import roles, teams
from accounts.models import AuditEntry, User
from annotation import upload_pictures, uploads
from annotation.models import (
    Candidate,
    Item,
    Judgment,
    Picture,
    StoredMapping,
    Study,
    Upload,
    UploadPart,
)
from annotation.protocols.templates import read_protocol
from annotation.readers.json_rows import MOST_OBJECT_CHARACTERS
from metrics import models, study_files
from tests.annotation import importing, studies
from tests.codes import codes_on, field_codes
from tests.console.work import work_off
from work.execution import run_job
from work.models import Job

pytestmark = pytest.mark.django_db

FILE = (
    "dlg_id;history;model;response;latency\n"
    "d1;User: Hi;alpha;Hello;3\nd1;User: Hi;beta;Hey ☃;4\nd2;User: Bye;alpha;Bye;5\n"
)


def sent(content: str | bytes = FILE, name: str = "a.csv") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, (content.encode() if isinstance(content, str) else content))


def begin(client: Client, **fields: Any) -> Any:
    form = {"title": "Airline", "team": "", "begin": "file", "template": "", "source": ""}
    return client.post(reverse("console:new-study"), form | {"file": sent()} | fields)


def to(name: str, upload: Upload | None = None) -> str:
    return reverse(f"console:{name}", args=[(upload or Upload.objects.get()).token])


def mapping_of(**uses: str) -> dict[str, str]:
    upload = Upload.objects.get()
    names = [column["name"] for column in upload.columns]
    known = upload.mapping["uses"] | uses
    return {f"use-{n}": known.get(name, "") for n, name in enumerate(names)}


def show(client: Client, **query: Any) -> Any:
    """The page of the file, with what would be imported as its `preview`."""
    return client.get(to("upload"), query)


def html(client: Client) -> str:
    return show(client).content.decode()


def preview(client: Client) -> Any:
    return show(client).context["preview"]


def fixes(found: Any) -> dict[str, list[str]]:
    """What the buttons of each problem send."""
    return {each.code: [fix.value for fix in each.fixes] for each in found.to_resolve}


def button_of(answer: Any) -> str:
    """The tag of the button that creates the study."""
    found = re.search(r'<button [^>]*formaction="[^>]*>', answer.content.decode())
    assert found
    return found[0]


def places(faults: Any) -> list[tuple[Any, str, str]]:
    return [(fault.line, fault.column, fault.value) for fault in faults]


def asks_for_labels(answer: Any) -> bool:
    """Whether the page leads to the upload of labels instead."""
    return 'data-testid="labels-instead"' in answer.content.decode()


def test_a_file_becomes_a_study_of_whoever_confirms_it(rosa, researcher):
    answer = begin(rosa)
    assert answer.url == to("upload")
    answer = show(rosa)
    found = answer.context["preview"]
    assert (Upload.objects.get().form["delimiter"], Upload.objects.get().form["encoding"]) == (
        ";",
        "utf-8",
    )
    assert (found.n_items, found.n_responses, found.n_systems, found.n_per_item) == (
        2,
        3,
        2,
        (1, 2),
    )
    assert "User: Hi" in answer.content.decode()
    assert not Study.objects.exists()
    answer = rosa.post(to("upload-import"), mapping_of())
    study = Study.objects.get()
    expected = ("airline", "Airline", researcher, None)
    assert (study.slug, study.title, study.owner, study.team) == expected
    expected = [("d1", "User: Hi"), ("d2", "User: Bye")]
    assert list(Item.objects.values_list("key", "context")) == expected
    assert Candidate.objects.filter(text="Hey ☃", system="beta").count() == 1
    assert study.questions.get().name == "appropriateness"
    # The file is gone; its page leads to the next step.
    assert not UploadPart.objects.exists()
    answer = rosa.get(answer.url, follow=True)
    assert answer.request["PATH_INFO"] == reverse("console:protocol", args=["airline"])
    [message] = answer.context["messages"]
    assert "2" in str(message)


def test_the_page_and_the_api_show_what_was_read_before_anything_is_stored(rosa):
    begin(rosa, file=sent(FILE + ";;;;\nd9;only\nd8;only\n"))
    upload = Upload.objects.get()
    assert not Study.objects.exists()
    answer = rosa.get(f"/api/v1/uploads/{upload.token}/").json()
    reading = answer["reading"]
    assert (reading["n_rows"], reading["n_used"]) == (6, 3)
    expected = [("blank_row", 1), ("field_count", 2)]
    assert [(each["code"], each["n"]) for each in reading["left_out"]] == expected
    assert [note["code"] for note in reading["notes"]] == ["delimiter_guessed"]
    [group] = reading["faults"]
    assert (group["code"], group["n"], group["places"]) == ("field_count", 2, ["Line 6", "Line 7"])
    assert answer["faults"][0]["place"] == "Line 6"
    page = html(rosa)
    for sentence in upload.reading_sentences:
        assert escape(sentence) in page
    rosa.post(to("upload-map"), mapping_of() | {"fix": "field_count=leave-out"})
    rosa.post(to("upload-import"), mapping_of())
    assert rosa.get(f"/api/v1/uploads/{upload.token}/").json()["reading"] == reading
    assert Study.objects.get().items.count() == 2


def test_a_study_of_a_team_is_made_with_its_protocol(rosa, researcher):
    team = teams.create_team(name="Lab", owner=researcher)
    begin(rosa, team=str(team.pk), template="likert_agreement")
    rosa.post(to("upload-import"), mapping_of())
    study = Study.objects.get()
    assert study.team == team
    assert study.protocols.get().document["title"] == read_protocol("likert_agreement").title
    entry = AuditEntry.objects.filter(action="study.import").get()
    assert (entry.actor, entry.details["n_items"]) == (researcher, 2)
    # It can begin with a template alone.
    begin(rosa, title="Shoes", begin="template", template="alternatives", file="")
    study = Study.objects.latest("pk")
    assert (study.kind, study.items.count(), study.protocols.count()) == ("alternatives", 0, 1)
    assert list(study.questions.values_list("name", flat=True)) == ["acceptable"]


def test_a_person_corrects_the_columns_and_sees_what_comes_of_it(rosa):
    begin(rosa)
    fields = mapping_of(history="condition", latency="context")
    answer = rosa.post(to("upload-map"), fields, headers={"HX-Request": "true"})
    # The preview alone is sent, with what is wrong at each cell, and the reason of each column.
    assert 'id="mapping"' not in answer.content.decode()
    assert 'id="why-1" hx-swap-oob="true"' in answer.content.decode()
    states = [column["state"] for column in answer.context["columns"]]
    assert states == ["", "changed", "", "", "changed"]
    assert (3, "latency", "4") in places(answer.context["preview"].faults)
    wrong = mapping_of(model="", response="", history="", latency="")
    answer = rosa.post(to("upload-map"), wrong, follow=True)
    # What is missing is asked for, and is not called an error.
    assert len(answer.context["preview"].problems) == 1
    assert codes_on(answer.content.decode()) == ["no_response"]
    live = rosa.post(to("upload-map"), wrong, headers={"HX-Request": "true"})
    assert b'role="alert"' not in live.content
    assert " disabled" in button_of(answer)
    assert asks_for_labels(answer)
    rosa.post(to("upload-import"), wrong)
    assert not Study.objects.exists()


def test_a_file_of_ratings_leads_to_the_upload_of_labels(rosa):
    begin(rosa, file=sent("item,annotator,system,rating\nd1,Ann,alpha,4\nd1,Bob,alpha,5\n"))
    assert asks_for_labels(show(rosa))
    # Where there are responses, whatever else is wrong is no matter of labels.
    begin(rosa, file=sent("item,model,response,picture\nd1,alpha,Yes.,a.png\n"))
    answer = rosa.get(to("upload", Upload.objects.latest("pk")))
    assert answer.context["preview"].problems
    assert not asks_for_labels(answer)


def test_the_mapping_is_kept_for_the_next_file_of_these_columns(rosa):
    begin(rosa)
    rosa.post(to("upload-import"), mapping_of(history="reference"))
    assert StoredMapping.objects.get().user.username == "rosa"
    Upload.objects.all().delete()
    begin(rosa, title="Second")
    assert Upload.objects.get().mapping["uses"]["history"] == "reference"
    assert Upload.objects.get().is_mapping_known
    assert show(rosa).context["is_stored"]
    assert [each["state"] for each in show(rosa).context["columns"]][1] == "kept"
    # It is kept when it is changed, whether or not the import succeeds, unless it makes no items.
    rosa.post(to("upload-map"), mapping_of(history="condition", latency="context"))
    rosa.post(to("upload-map"), mapping_of(response=""))
    Upload.objects.all().delete()
    begin(rosa, title="Third")
    uses = Upload.objects.get().mapping["uses"]
    assert (uses["history"], uses["latency"], uses["response"]) == (
        *("condition", "context", "response"),
    )
    Upload.objects.all().delete()
    Study.objects.all().delete()
    # Systems of columns have the names that a person gives.
    begin(rosa, file=sent("prompt,response_a,response_b\nHi,Hello,Hey\n"))
    named = mapping_of() | {"system-1": "tuned-70b"}
    rosa.post(to("upload-map"), named | {"fix": "no_item_column=generate"})
    rosa.post(to("upload-import"), named)
    assert set(Candidate.objects.values_list("system", flat=True)) == {"tuned-70b", "b"}


def test_names_of_items_are_generated_only_after_a_warning_that_offers_the_best_column(rosa):
    begin(rosa)
    assert "no_item_column" not in codes_on(html(rosa))
    fields = mapping_of(dlg_id="")
    answer = rosa.post(to("upload-map"), fields, headers={"HX-Request": "true"})
    assert codes_on(answer.content.decode()) == ["no_item_column"]
    assert fixes(answer.context["preview"]) == {
        "no_item_column": ["item=0", "no_item_column=generate"]
    }
    rosa.post(to("upload-import"), fields)
    assert not Study.objects.exists()
    rosa.post(to("upload-map"), fields | {"fix": "item=0"})
    assert Upload.objects.get().mapping["uses"]["dlg_id"] == "item"
    assert preview(rosa).ends == ["d1", "d2"]
    rosa.post(to("upload-map"), fields | {"fix": "no_item_column=generate"})
    rosa.post(to("upload-import"), fields)
    assert Item.objects.filter(key__startswith="item-").count() == 2


def test_equal_problems_are_one_row_with_one_button(rosa):
    rows = "".join(f"d{n};User: Hi;;Hello {n};3\n" for n in range(3, 123))
    begin(rosa, file=sent(FILE + "d4;\nd5;\nd1;User: Hi;gamma;;\n" + rows))
    found = preview(rosa)
    assert fixes(found) == {
        "field_count": ["field_count=leave-out"],
        "empty": ["empty=leave-out"],
        "response_without_text": ["response_without_text=keep", "response_without_text=leave-out"],
    }
    assert (found.n_required, found.n_optional) == (2, 1)
    assert "120" in next(each.title for each in found.to_resolve if each.code == "empty")
    assert "d1, gamma" in next(each.detail for each in found.to_resolve if not each.is_required)
    assert found.n_responses == 3
    for code in ("response_without_text=keep", "field_count=leave-out", "empty=leave-out"):
        rosa.post(to("upload-import"), mapping_of())
        rosa.post(to("upload-map"), mapping_of() | {"fix": code})
    assert not Study.objects.exists()
    found = preview(rosa)
    assert (found.n_required, found.n_optional, found.why_not, found.n_responses) == (0, 0, "", 4)
    rosa.post(to("upload-import"), mapping_of())
    assert Study.objects.get().items.count() == 2
    # The next file of these columns begins without what was done about this one.
    assert "fixes" not in StoredMapping.objects.get().mapping


def test_all_faults_are_shown_and_nothing_is_half_imported(rosa):
    begin(rosa, file=sent(FILE + ";x;y;z;1\nd9;x;;z;1\nd8;a\n"))
    rosa.post(to("upload-import"), mapping_of())
    assert not Study.objects.exists()
    found = preview(rosa)
    assert found.n_faults == 3
    assert places(found.faults) == [(5, "dlg_id", ""), (6, "model", ""), (7, "", "")]
    assert "2" in found.faults[2].problem  # so many fields, where the header has 5
    assert "5" in found.faults[2].problem
    assert [html(rosa).count(f">{name}</code>") for name in ("dlg_id", "model")] == [1, 1]
    rosa.post(to("upload-import"), mapping_of() | {"leave-out": "on"})
    assert "d9" in Job.objects.latest("pk").message
    assert set(Item.objects.values_list("key", flat=True)) == {"d1", "d2"}


@pytest.mark.slow
def test_a_file_that_cannot_be_read_says_why(rosa):
    page = b'{"data": [{"item": "d1", "response": "Hi"}]' + b" " * MOST_OBJECT_CHARACTERS + b"}"
    for name, content, said in [
        ("a.pdf", b"%PDF-1.7\n", "PDF"),
        ("items.json", page, "67"),  # the most million characters of an object
        ("a.csv", FILE.splitlines()[0].encode() + b"\n", ""),
    ]:
        begin(rosa, file=sent(content, name))
        run_job(Job.objects.latest("pk").pk)
        [fault] = Upload.objects.get().faults
        assert said in fault["problem"]
        assert 'role="alert"' in html(rosa)
        assert 'id="mapping"' not in html(rosa)
        Upload.objects.all().delete()


def test_a_file_is_read_in_another_encoding_and_shown_as_text(rosa):
    begin(rosa, file=sent("item,<b>x</b>,response\n1,<script>alert(1)</script>,<i>y</i>\n"))
    assert "<script>alert" not in html(rosa)
    assert "<b>x</b>" not in html(rosa)
    Upload.objects.all().delete()
    begin(rosa, file=sent("item,context,response\nd1,Привет,да\n".encode("cp1251")))
    assert "Windows-1251" in show(rosa).context["format"]
    assert "Привет" in html(rosa)
    rosa.post(to("upload-read"), {"encoding": "windows-1252", "delimiter": ","})
    assert "Ïðèâåò" in html(rosa)


@pytest.mark.parametrize(
    ("fields", "codes"),
    [
        ({"file": ""}, {"file": ["missing"]}),
        ({"file": sent(b"")}, {"file": ["empty_file"]}),
        ({"begin": "template", "file": ""}, {"template": ["missing"]}),
        ({"begin": "copy", "file": ""}, {"source": ["missing"]}),
        ({"title": ""}, {"title": ["required"]}),
        ({"team": "999"}, {"team": ["invalid_choice"]}),
    ],
)
def test_a_form_says_what_is_missing(rosa, fields, codes):
    answer = begin(rosa, **fields)
    assert answer.status_code == 422
    assert field_codes(answer.context["form"]) == codes
    assert (Study.objects.count(), Upload.objects.count()) == (0, 0)


def test_one_person_fills_no_database_with_files_that_wait(rosa, settings):
    settings.UPLOAD_MAX_MEGABYTES = 0
    assert field_codes(begin(rosa).context["form"]) == {"file": ["too_large"]}
    assert not Upload.objects.exists()
    settings.UPLOAD_MAX_MEGABYTES = 1
    begin(rosa)
    Upload.objects.update(n_bytes=3 * 1024**2)
    answer = begin(rosa, title="Another")
    assert answer.status_code == 422
    assert field_codes(answer.context["form"]) == {"file": ["no_room"]}
    assert Upload.objects.count() == 1
    rosa.post(to("upload-discard"))
    assert begin(rosa, title="Another").status_code == 302


def test_a_copy_has_the_items_and_questions_and_no_answers(rosa, researcher, colleague):
    theirs = studies.rated_study("theirs", owner=colleague)
    assert begin(rosa, begin="copy", source=str(theirs.pk), file="").status_code == 422
    assert Study.objects.count() == 1  # nobody copies a study that they may not see
    source = studies.rated_study("source", owner=researcher)
    begin(rosa, begin="copy", source=str(source.pk), file="", title="Again")
    copy = Study.objects.get(title="Again")
    rows = Candidate.objects.order_by("item__position", "position").values_list
    fields = ("item__key", "item__context", "key", "system", "text")
    assert list(rows(*fields).filter(item__study=copy)) == list(
        rows(*fields).filter(item__study=source)
    )
    assert list(copy.questions.values_list("name", "wording", "level")) == list(
        source.questions.values_list("name", "wording", "level")
    )
    assert not Judgment.objects.filter(question__study=copy).exists()


def test_items_are_added_to_a_study_by_another_file(rosa):
    begin(rosa)
    rosa.post(to("upload-import"), mapping_of())
    study = Study.objects.get()
    Upload.objects.all().delete()
    where = reverse("console:add-items", args=[study.slug])
    assert rosa.post(where, {"file": sent(FILE + "d3;User: Ok;alpha;Ok;1\n")}).url == to("upload")
    rosa.post(to("upload-import"), mapping_of())
    assert study.items.count() == 3
    Upload.objects.all().delete()
    # Another text under a name that the study has is refused, with the line.
    rosa.post(where, {"file": sent(FILE.replace("User: Bye", "User: Ciao"))})
    rosa.post(to("upload-import"), mapping_of())
    assert any("d2" in fault.problem for fault in preview(rosa).faults)
    assert study.items.count() == 3


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_large_file_is_read_and_imported_in_the_background(rosa):
    n = uploads.AT_ONCE_BYTES // 25
    rows = "".join(f"d{number};User: Hi;alpha;Hello {number};3\n" for number in range(n))
    begin(rosa, file=sent(FILE.splitlines(keepends=True)[0] + rows))
    assert show(rosa).context["job"].state == "queued"
    assert rosa.get(to("upload-progress"), headers={"HX-Request": "true"}).status_code == 200
    work_off()
    with CaptureQueriesContext(connection) as queries:
        found = preview(rosa)
    assert (found.n_items, found.n_responses, found.n_systems) == (n, n, 1)
    assert (found.is_whole, found.n_sample) == (False, 1000)
    assert len(queries) <= 15
    rosa.post(to("upload-import"), mapping_of())
    assert not Study.objects.exists()
    work_off()
    assert Item.objects.count() == n
    assert rosa.get(to("upload-progress"), headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert set(Job.objects.values_list("state", flat=True)) == {"done"}


def test_a_file_is_deleted_when_it_is_discarded_or_forgotten(rosa):
    begin(rosa)
    assert rosa.post(to("upload-discard")).url == reverse("console:new-study")
    assert (Upload.objects.count(), UploadPart.objects.count()) == (0, 0)
    begin(rosa)
    assert uploads.forget_uploads() == 0
    Upload.objects.update(created_at=timezone.now() - timezone.timedelta(days=8))
    assert uploads.forget_uploads() == 1
    assert (Upload.objects.count(), UploadPart.objects.count()) == (0, 0)


@pytest.mark.parametrize("role", [*roles.Role, None])
def test_a_teams_file_is_seen_by_those_who_may_import_into_it(rosa, researcher, signed_in, role):
    team = teams.create_team(name="Lab", owner=researcher)
    begin(rosa, team=str(team.pk))
    member = User.objects.create_user("member")
    if role is not None:
        teams.set_role(team=team, user=member, role=role, actor=researcher)
    client = signed_in(member)
    may = role is not None and roles.Permission.EDIT in roles.PERMISSIONS[role]
    actions = [(f"upload-{name}", "post") for name in ("read", "map", "import", "discard")]
    for name, method in [("upload", "get"), ("upload-progress", "get"), *actions]:
        where = to(name) if Upload.objects.exists() else reverse("console:upload", args=["0" * 32])
        status = getattr(client, method)(where).status_code
        assert (status in (200, 302)) if may else status == 404, name


def test_who_left_the_team_no_longer_imports_into_it(rosa, researcher):
    other = User.objects.create_user("other")
    team = teams.create_team(name="Lab", owner=other)
    teams.set_role(team=team, user=researcher, role=roles.Role.RESEARCHER, actor=other)
    begin(rosa, team=str(team.pk))
    teams.set_role(team=team, user=researcher, role=roles.Role.ANALYST, actor=other)
    assert rosa.post(to("upload-import"), mapping_of()).status_code == 403
    assert not Study.objects.exists()


def test_the_preview_is_paged_through(rosa):
    rows = "".join(f"d{n};User: Hi {n};alpha;Hello {n};3\n" for n in range(8))
    begin(rosa, file=sent(FILE.splitlines(keepends=True)[0] + rows))
    assert ("Hello 0" in html(rosa), "Hello 1" in html(rosa)) == (True, False)
    answer = rosa.post(to("upload-map"), mapping_of() | {"page": "3"}, follow=True)
    assert "Hello 2" in answer.content.decode()
    shown = answer.context["preview"].shown
    assert (shown.number, shown.paginator.count) == (3, 8)
    # As annotators see it, without a row of a study.
    page = rosa.get(to("upload-item"), {"page": "3"})
    assert "sandbox" in page["Content-Security-Policy"]
    assert "Hello 2" in page.content.decode()
    assert "alpha" not in page.content.decode()
    assert not Study.objects.exists()
    rosa.post(to("upload-map"), mapping_of(response=""))
    assert rosa.get(to("upload-item"), {"page": "3"}).status_code == 404


def test_pictures_of_the_zip_are_shown_and_nothing_else_of_it(rosa, colleague, signed_in):
    table = "item,title,image,key,candidate_image\nt1,A shoe,in/a b.png,c1,b.png\n"
    png = b"\x89PNG\r\n\x1a\n"
    content = importing.as_zip({"t.csv": table, "in/a b.png": png, "b.png": png + b"b"})
    begin(rosa, file=sent(content, "a.zip"), template="alternatives")
    where = to("upload-picture")
    assert f'src="{where}?name=in%2Fa%20b.png"' in html(rosa)
    found = preview(rosa)
    assert (found.n_items, found.n_responses, found.n_systems) == (1, 1, 0)
    assert not found.to_resolve
    assert "data:image/png;base64," in rosa.get(to("upload-item")).content.decode()
    assert '<span class="said" dir="auto">c1</span>' in html(rosa)
    answer = rosa.get(where, {"name": "in/a b.png"})
    assert (answer.content, answer["Content-Type"]) == (png, "image/png")
    assert "sandbox" in answer["Content-Security-Policy"]
    assert [rosa.get(where, {"name": n}).status_code for n in ("", "t.csv", "../x")] == [404] * 3
    assert signed_in(colleague).get(where, {"name": "b.png"}).status_code == 404


def fashion(n_targets: int = 12, n_candidates: int = 7) -> bytes:
    """A zip of a workbook with pictures in a folder, which its cells do not name."""
    header = ["topic", "target picture", "description", "candidate", "candidate picture"]
    names = [(f"T{n:02}", f"t{n:02}_c{c}") for n in range(n_targets) for c in range(n_candidates)]
    rows = [
        [topic, f"target{topic[1:]}.png", f"An ankle boot, number {topic[1:]}", f"{topic}-{name}",
         f"{name}.png", f"Another boot {name}", 19.5 + number]
        for number, (topic, name) in enumerate(names)
    ]  # fmt: skip
    png = b"\x89PNG\r\n\x1a\n"
    pictures = {f"pics/{row[k]}": png + str(row[k]).encode() for row in rows for k in (1, 4)}
    book = importing.as_excel([[*header, "candidate text", "price_eur"], *rows])
    return importing.as_zip({"fashion.xlsx": book, **pictures})


def test_a_zip_of_targets_and_pictures_in_a_folder_becomes_a_study_as_it_is_guessed(rosa):
    begin(rosa, file=sent(fashion(), "fashion.zip"))
    do_jobs()  # a workbook in a zip is read in the background
    assert {**Upload.objects.get().mapping["uses"]} == {
        "topic": "item",
        "target picture": "picture",
        "description": "context",
        "candidate": "candidate",
        "candidate picture": "candidate_picture",
        "candidate text": "response",
    }
    found = preview(rosa)
    assert (found.n_items, found.n_responses, found.n_per_item) == (12, 84, (7, 7))
    assert (found.ends, found.why_not) == (["T00", "T11"], "")
    # The pictures are found by their names; one row says where.
    assert fixes(found) == {"picture_folders": ["picture_folders=use"]}
    assert "168" in found.to_resolve[0].title
    assert "pics/target00.png" in found.to_resolve[0].detail
    page = rosa.get(to("upload-item"), {"page": "2"}).content.decode()
    assert page.count("data:image/png;base64,") == 8
    rosa.post(to("upload-import"), mapping_of())
    do_jobs()
    study = Study.objects.get()
    assert show(rosa).url == reverse("console:protocol", args=[study.slug])
    assert (study.kind, study.items.count()) == ("alternatives", 12)
    assert Candidate.objects.exclude(picture=None).count() == 84


def test_pictures_that_are_missing_or_in_several_folders_are_one_row_each(rosa):
    table = "item,title,image,key,candidate_image\n" + "".join(
        f"t{n},A shoe,a.png,c{n},{name}\n" for n, name in enumerate(["b.png", "c.png", "d.png"])
    )
    png = b"\x89PNG\r\n\x1a\n"
    paths = ("new/a.png", "old/a.png", "new/b.png")
    pictures = {path: png + path.encode() for path in paths}
    begin(rosa, file=sent(importing.as_zip({"t.csv": table, **pictures}), "a.zip"))
    assert fixes(preview(rosa)) == {
        "several_pictures": ["several_pictures=new", "several_pictures=old"],
        "no_picture": ["no_picture=leave-out"],
        "picture_folders": ["picture_folders=use"],
    }
    for fix in ("several_pictures=old", "no_picture=leave-out"):
        assert preview(rosa).why_not
        rosa.post(to("upload-map"), mapping_of() | {"fix": fix})
    rosa.post(to("upload-import"), mapping_of())
    assert bytes(Study.objects.get().items.get().picture.content).endswith(b"old/a.png")


def test_a_picture_is_read_out_of_the_parts_of_a_large_file(researcher):
    png = b"\x89PNG\r\n\x1a\n" + bytes(16) + bytes(range(256)) * 2000
    body = importing.as_zip({"noise": bytes(uploads.PART_BYTES * 2 + 7), "a.png": png})
    upload = Upload.objects.create(uploaded_by=researcher, file_name="a.zip", n_bytes=len(body))
    for n, start in enumerate(range(0, len(body), uploads.PART_BYTES)):
        part = body[start : start + uploads.PART_BYTES]
        UploadPart.objects.create(upload=upload, position=n, content=part)
    assert upload_pictures.uploaded_picture(upload, "a.png").content == png


WIDE = "dialog_id;model;bleurt;loss\nd0;alpha;0,5;2\nd0;beta;0.25;\nd1;alpha;0.75;3\n"
LONG = "item,system,metric,value,note\nd0,alpha,bleurt,0.5,x\nd0,beta,bleurt,,y\n"


@pytest.fixture
def study(researcher: User) -> Study:
    return studies.rating_study(n_items=2, owner=researcher)


def send(client: Client, study: Study, content: str | bytes, name: str = "scores.csv") -> Upload:
    body = content.encode() if isinstance(content, str) else content
    where = reverse("console:add-scores", args=[study.slug])
    answer = client.post(where, {"file": SimpleUploadedFile(name, body)})
    assert answer.status_code == 302, answer.content.decode()
    do_jobs()
    return Upload.objects.get()


def do_jobs() -> None:
    """Parquet is read in the background, however small it is."""
    for job in Job.objects.exclude(state=Job.State.DONE):
        run_job(job.pk)


def values(study: Study) -> dict[Any, float]:
    rows = study_files.score_frame(study).dropna(subset="value").itertuples()
    return {(row.metric, row.item, row.candidate): row.value for row in rows}


def test_columns_of_metrics_are_guessed_shown_and_imported(rosa, study):
    upload = send(rosa, study, WIDE.replace("0,5", "0.5"))
    uses = {"dialog_id": "item", "model": "system", "bleurt": "score", "loss": "score"}
    assert upload.mapping["uses"] == uses
    shown = show(rosa).context
    assert upload.form["delimiter"] == ";"
    assert (shown["summary"]["n_scores"], shown["summary"]["n_metrics"]) == (6, 2)
    names = ("metric", "n", "least", "most", "n_undefined", "n_without")
    bleurt = next(row for row in shown["metrics"] if row["metric"] == "bleurt")
    assert [bleurt[name] for name in names] == ["bleurt", 3, "0.25", "0.75", 0, 1]
    assert not models.ScoringRun.objects.exists()
    form = mapping_of() | {"lower": "loss", "signature": "loss|v1"}
    rosa.post(to("upload-map"), form)
    answer = rosa.post(to("upload-import"), form)
    assert rosa.get(answer.url).url == reverse("console:validation", args=[study.slug])
    assert values(study) == {
        ("bleurt", "d0", "alpha"): 0.5,
        ("bleurt", "d0", "beta"): 0.25,
        ("bleurt", "d1", "alpha"): 0.75,
        ("loss", "d0", "alpha"): 2,
        ("loss", "d1", "alpha"): 3,
    }
    runs = models.ScoringRun.objects.values_list("metric", "higher_is_better", "signature")
    assert set(runs) == {("bleurt", True, "loss|v1"), ("loss", False, "loss|v1")}


def test_a_row_a_score_names_its_metric(rosa, study):
    send(rosa, study, LONG)
    assert show(rosa).context["summary"]["n_scores"] == 2
    rosa.post(to("upload-import"), mapping_of())
    do_jobs()
    assert values(study) == {("bleurt", "d0", "alpha"): 0.5}
    assert models.Score.objects.get(value=None).reason == "not computed"
    assert models.ScoringRun.objects.get().signature == "imported|file:scores.csv"


def test_all_faults_are_shown_at_their_cells_and_nothing_is_imported(rosa, study):
    content = WIDE + "d9;alpha;1;1\nd1;beta;high;1\nd0;alpha;0.1;9\nd1;beta;1\n;beta;1;1\n"
    upload = send(rosa, study, content)
    # The decimal comma in line 2 is a number: columns are separated by semicolons.
    assert upload.n_faults == 6
    assert [(one["line"], one["column"], one["value"]) for one in upload.faults] == [
        (5, "", ""),
        (6, "bleurt", "high"),
        (7, "bleurt", "0.1"),
        (7, "loss", "9"),
        (8, "", ""),
        (9, "dialog_id", ""),
    ]
    missing = upload.faults[0]["problem"]
    assert "'alpha'" in missing
    assert "'d9'" in missing
    rosa.post(to("upload-import"), mapping_of())
    assert not models.ScoringRun.objects.exists()
    assert Upload.objects.get().result is None


def test_policies_for_scores_are_chosen_and_what_was_read_is_shown_before_the_import(rosa, study):
    content = "item,system,q\nd0,alpha,0.5\nd0,alpha,1.5\nd7,alpha,1\nd0,beta,NA\n"
    upload = send(rosa, study, content)
    assert [one["code"] for one in upload.faults] == ["repeated_score", "unknown_candidate"]
    chosen = {"repeats": "mean", "unmatched": "leave-out"}
    rosa.post(to("upload-map"), mapping_of() | chosen)
    upload = Upload.objects.get()
    assert upload.faults == []
    reading = upload.reading
    assert (reading["n_rows"], reading["n_used"], reading["missing"]) == (4, 3, {"NA": 1})
    assert reading["policies"] == {"missing": "words", **chosen}
    page = show(rosa).content.decode()
    assert all(sentence in unescape(page) for sentence in upload.reading_sentences)
    assert not models.ScoringRun.objects.exists()
    rosa.post(to("upload-import"), mapping_of() | chosen)
    assert values(study) == {("q", "d0", "alpha"): 1}


def test_what_the_columns_are_is_said_and_kept(rosa, study):
    content = "doc,bot,q\nd0,alpha,0.5\n"
    send(rosa, study, content)
    assert len(show(rosa).context["problems"]) == 1
    rosa.post(to("upload-map"), mapping_of(doc="item"))
    assert show(rosa).context["summary"]["n_scores"] == 1
    rosa.post(to("upload-map"), mapping_of(doc=""))
    Upload.objects.all().delete()
    assert send(rosa, study, content.replace("0.5", "0.75")).mapping["uses"]["doc"] == "item"
    rosa.post(to("upload-import"), mapping_of())
    assert values(study) == {("q", "d0", "alpha"): 0.75}


def test_a_table_of_parquet_is_read_in_the_background(rosa, study):
    content = importing.as_parquet({"item": ["d0"], "system": ["alpha"], "bleurt": [0.5]})
    send(rosa, study, content, "scores.parquet")
    rosa.post(to("upload-import"), mapping_of())
    do_jobs()
    assert values(study) == {("bleurt", "d0", "alpha"): 0.5}


def test_analysts_import_scores_and_the_log_says_so(researcher, colleague, signed_in):
    team = teams.create_team(name="Lab", owner=researcher)
    teams.set_role(team=team, user=colleague, role=roles.Role.ANALYST, actor=researcher)
    study = studies.rating_study(n_items=1, team=team)
    browser = signed_in(colleague)
    send(browser, study, LONG)
    browser.post(to("upload-import"), mapping_of())
    assert models.Score.objects.count() == 2
    entry = AuditEntry.objects.get(action="scores.import")
    assert entry.details == {"file": "scores.csv", "n_scores": 2}
    teams.set_role(team=team, user=colleague, role=roles.Role.AUDITOR, actor=researcher)
    assert browser.get(to("upload")).status_code == 403


DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@pytest.fixture
def picture():
    digest = sha256(DRAWING).hexdigest()
    return Picture.objects.create(sha256=digest, media_type="image/svg+xml", content=DRAWING)


def fetch(digest, method="get"):
    return getattr(Client(), method)(reverse("console:picture", args=[digest]))


def test_anyone_who_knows_its_hash_sees_a_picture_that_runs_nothing_and_never_changes(picture):
    answer = fetch(picture.sha256)
    assert (answer.status_code, answer.content) == (200, DRAWING)
    assert answer["Content-Type"] == "image/svg+xml"
    policy = answer["Content-Security-Policy"].split("; ")
    assert {"sandbox", "default-src 'none'"} <= set(policy)
    assert not any("script" in rule for rule in policy)
    assert answer["X-Content-Type-Options"] == "nosniff"
    rules = {rule.strip() for rule in answer["Cache-Control"].split(",")}
    assert rules == {"public", "max-age=31536000", "immutable"}
    assert "Set-Cookie" not in answer
    # A worker's page of another origin may show it.
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert fetch(picture.sha256, "head").status_code == 200
    for method in ("post", "put", "delete"):
        assert fetch(picture.sha256, method).status_code == 405


@pytest.mark.parametrize("digest", ["0" * 64, "nothing", "..%2Fsettings"])
def test_an_unknown_picture_is_not_found(picture, digest):
    assert fetch(digest).status_code == 404
