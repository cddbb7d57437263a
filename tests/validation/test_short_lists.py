import pytest

from validation.documents.terms import short_list


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "a, b and 2 others"),
        (list("abcdefgh"), "a, b and 6 others"),
    ],
)
def test_a_list_of_many_names_ends_with_how_many_others_there_are(names, text):
    assert short_list(names) == text
