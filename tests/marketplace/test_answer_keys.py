"""Grading qualification tests."""

import pytest

from marketplace.documents.answer_keys import NAMESPACE, parse_answer_key
from marketplace.exceptions import InvalidQuestion

QUESTIONS = """<Question><QuestionIdentifier>nextmove</QuestionIdentifier>
<AnswerOption><SelectionIdentifier>D</SelectionIdentifier><AnswerScore>5</AnswerScore></AnswerOption>
</Question>
<Question><QuestionIdentifier>fruit</QuestionIdentifier>
<AnswerOption><SelectionIdentifier>apples</SelectionIdentifier>
<SelectionIdentifier>pears</SelectionIdentifier><AnswerScore>10</AnswerScore></AnswerOption>
<AnswerOption><SelectionIdentifier>stones</SelectionIdentifier><AnswerScore>-2</AnswerScore>
</AnswerOption><DefaultScore>1</DefaultScore></Question>"""
RANGES = """<RangeMapping>
<SummedScoreRange><InclusiveLowerBound>5</InclusiveLowerBound>
<InclusiveUpperBound>7</InclusiveUpperBound><QualificationValue>50</QualificationValue>
</SummedScoreRange><SummedScoreRange><InclusiveLowerBound>8</InclusiveLowerBound>
<InclusiveUpperBound>15</InclusiveUpperBound><QualificationValue>90</QualificationValue>
</SummedScoreRange><OutOfRangeQualificationValue>-1</OutOfRangeQualificationValue>
</RangeMapping>"""
RIGHT = {"nextmove": ("D",), "fruit": ("pears", "apples")}


def key(mapping="", questions=QUESTIONS):
    inside = f"<QualificationValueMapping>{mapping}</QualificationValueMapping>" if mapping else ""
    return f'<AnswerKey xmlns="{NAMESPACE}">{questions}{inside}</AnswerKey>'


@pytest.mark.parametrize(
    ("mapping", "answers", "value"),
    [
        ("", RIGHT, 15),
        ("", {"nextmove": ("D",), "fruit": ("apples",)}, 6),
        ("", {"nextmove": ("C",), "fruit": ("stones",)}, -2),
        ("", {}, 1),
        ("<PercentageMapping><MaximumSummedScore>15</MaximumSummedScore></PercentageMapping>",
         RIGHT, 100),
        ("<PercentageMapping><MaximumSummedScore>15</MaximumSummedScore></PercentageMapping>",
         {"nextmove": ("D",)}, 40),
        ("<PercentageMapping><MaximumSummedScore>8</MaximumSummedScore></PercentageMapping>",
         {}, 13),
        ("<ScaleMapping><SummedScoreMultiplier>3</SummedScoreMultiplier></ScaleMapping>",
         RIGHT, 45),
        ("<ScaleMapping><SummedScoreMultiplier>0.5</SummedScoreMultiplier></ScaleMapping>",
         RIGHT, 8),
        (RANGES, {"nextmove": ("D",)}, 50),
        (RANGES, RIGHT, 90),
        (RANGES, {}, -1),
    ],
)  # fmt: skip
def test_a_test_is_graded_as_its_key_says(mapping, answers, value):
    assert parse_answer_key(key(mapping)).grade(answers) == value


def test_a_key_that_binds_its_namespace_and_does_not_use_it_is_read():
    loose = f'<AnswerKey xmlns:tns="{NAMESPACE}">{QUESTIONS}</AnswerKey>'
    assert parse_answer_key(loose).grade(RIGHT) == 15


@pytest.mark.parametrize(
    "xml",
    [
        "",
        "not xml",
        f'<!DOCTYPE a [<!ENTITY b "c">]>{key()}',
        f'<Answers xmlns="{NAMESPACE}"/>',
        key(questions=""),
        key(questions=QUESTIONS + QUESTIONS),
        key(questions="<Question><QuestionIdentifier>a</QuestionIdentifier></Question>"),
        key().replace("<AnswerScore>5<", "<AnswerScore>five<"),
        key().replace("<AnswerScore>5<", "<AnswerScore>NaN<"),
        key("<GuessMapping/>"),
        key("<PercentageMapping><MaximumSummedScore>0</MaximumSummedScore></PercentageMapping>"),
        key("<RangeMapping/>"),
        key() + " " * 65_536,
    ],
)
def test_a_key_that_cannot_be_used_is_refused(xml):
    with pytest.raises(InvalidQuestion):
        parse_answer_key(xml)
