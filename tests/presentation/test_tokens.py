import re
from itertools import product
from pathlib import Path

import pytest
from django.conf import settings

STATIC = Path(settings.BASE_DIR, "static")
TOKENS = (STATIC / "tokens.css").read_text()
SCHEMES = {
    name: dict(re.findall(rf"--([\w-]+): light-dark\({pattern}\)", TOKENS))
    for name, pattern in (("light", r"(#\w{6}), #\w{6}"), ("dark", r"#\w{6}, (#\w{6})"))
}
GROUNDS = ("ground", "sunken", "hover")
TEXTS = ("text", "muted", "accent", "accent-strong", "good", "warn", "bad", "gold-text")
SOFT = ("accent", "good", "warn", "bad")
MARKS = ("line-control", "zero", "gold", *(f"series-{n}" for n in range(1, 7)))


def luminance(color):
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_and_marks_are_seen_on_every_ground(scheme):
    colors = SCHEMES[scheme]
    pairs = [
        *((text, ground, 4.5) for text, ground in product(TEXTS, GROUNDS)),
        *((text, f"{state}-soft", 4.5) for state in SOFT for text in (state, "text", "muted")),
        *(("on-accent", accent, 4.5) for accent in ("accent", "accent-strong")),
        *((mark, ground, 3) for mark, ground in product(MARKS, GROUNDS)),
    ]
    low = [pair for *pair, least in pairs if contrast(colors[pair[0]], colors[pair[1]]) < least]
    assert low == []


def test_every_variable_of_a_stylesheet_is_defined():
    sheets = "".join(path.read_text() for path in STATIC.glob("*.css"))
    used = set(re.findall(r"var\((--[\w-]+)\)", sheets))
    assert used <= set(re.findall(r"(--[\w-]+):", sheets)) | {"--content-height"}
