import pytest
from django.test import Client

from tests.console.pages import words_of

pytestmark = pytest.mark.django_db
LOGIN = "/login/"
BOUNDARY = "multipart/form-data; boundary=b"


def refused(**options):
    answer = Client().post(LOGIN, **options)
    page = words_of(answer.content.decode())
    assert answer.status_code == 400
    assert "The request was refused" in page
    return page


def test_too_many_fields_are_refused_with_their_number(settings):
    settings.DATA_UPLOAD_MAX_NUMBER_FIELDS = 2
    assert "2 fields at most" in refused(data={str(n): "x" for n in range(3)})


def test_too_much_text_is_refused_with_its_size(settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2**20
    assert "can be 1 MiB at most" in refused(data={"text": "x" * 2**20})


def test_a_files_name_beyond_what_a_form_can_carry_is_refused():
    head = f'--b\r\nContent-Disposition: form-data; name="f"; filename="{"x" * 5000}"\r\n\r\n'
    page = refused(data=f"{head}text\r\n--b--\r\n".encode(), content_type=BOUNDARY)
    assert "their names may be too long" in page


def test_a_host_that_is_not_served_is_said():
    answer = Client().get("/", headers={"host": "evil"})
    assert answer.status_code == 400
    assert "not served at the address" in words_of(answer.content.decode())


def test_a_page_says_that_an_address_is_a_buttons(admin_client):
    answer = admin_client.get("/studies/any/collect/")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
    assert "This address belongs to a button" in words_of(answer.content.decode())
    assert not admin_client.get("/studies/any/collect/", headers={"accept": "text/csv"}).content
