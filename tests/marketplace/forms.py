"""A QuestionForm with everything in it, for the tests."""

NAMESPACE = (
    "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/QuestionForm.xsd"
)


def form(*parts: str, namespace: str = NAMESPACE) -> str:
    return f'<QuestionForm xmlns="{namespace}">{"".join(parts)}</QuestionForm>'


def question(identifier: str, answer: str, *, required: bool = True, content: str = "") -> str:
    return (
        f"<Question><QuestionIdentifier>{identifier}</QuestionIdentifier>"
        f"<IsRequired>{str(required).lower()}</IsRequired>"
        f"<QuestionContent>{content or f'<Text>About {identifier}?</Text>'}</QuestionContent>"
        f"<AnswerSpecification>{answer}</AnswerSpecification></Question>"
    )


def free_text(constraints: str = "", more: str = "") -> str:
    within = f"<Constraints>{constraints}</Constraints>" if constraints else ""
    return f"<FreeTextAnswer>{within}{more}</FreeTextAnswer>"


def selection(*identifiers: str, style: str = "", counts: str = "", other: str = "") -> str:
    options = "".join(
        f"<Selection><SelectionIdentifier>{name}</SelectionIdentifier>"
        f"<Text>Choice {name}</Text></Selection>"
        for name in identifiers
    )
    suggestion = f"<StyleSuggestion>{style}</StyleSuggestion>" if style else ""
    return (
        f"<SelectionAnswer>{counts}{suggestion}<Selections>{options}{other}</Selections>"
        "</SelectionAnswer>"
    )


OVERVIEW = """<Overview><Title>Judge a lamp</Title><Text>Look at the picture first.</Text>
<List><ListItem>Colour</ListItem><ListItem>Form</ListItem></List>
<Binary><MimeType><Type>image</Type><SubType>png</SubType></MimeType>
<DataURL>https://pictures.example/lamp.png</DataURL><AltText>A brass lamp</AltText></Binary>
<FormattedContent><![CDATA[<p>Be <b>fair</b>.<script>alert(1)</script></p>]]></FormattedContent>
</Overview>"""
OTHER = "<OtherSelection><Constraints><Length maxLength='20'/></Constraints></OtherSelection>"
TWO_OR_THREE = "<MinSelectionCount>2</MinSelectionCount><MaxSelectionCount>3</MaxSelectionCount>"
LETTERS = "<AnswerFormatRegex regex='^[A-Z]{3}$' flags='i' errorText='Three letters, please.'/>"
FULL_FORM = form(
    OVERVIEW,
    question("style", selection("plain", "ornate", style="radiobutton")),
    question("colours", selection("red", "green", "blue", counts=TWO_OR_THREE, style="checkbox")),
    question("room", selection("hall", "attic", style="dropdown"), required=False),
    question("shop", selection("north", "south", style="combobox", other=OTHER), required=False),
    question("price", free_text("<IsNumeric minValue='1' maxValue='500'/>")),
    question("reason", free_text("<Length minLength='5' maxLength='200'/>",
             "<NumberOfLinesSuggestion>4</NumberOfLinesSuggestion>")),
    question("code", free_text(LETTERS, "<DefaultText>abc</DefaultText>"), required=False),
)  # fmt: skip
