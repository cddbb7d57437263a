"""Length, distinct n-grams and repetition: what any learned metric should beat.

They look at the response alone. Words are runs of letters, marks and numbers of any script
(`metrics.scorers.tokenization.unicode_words`). Where a response is too short to have an n-gram,
its share of them is undefined, and not 0.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from error_codes import CodedText
from metrics.scorers.interface import (
    Example,
    Score,
    Scorer,
    Scores,
    require_at_least,
    sign,
    undefined,
)
from metrics.scorers.tokenization import unicode_words

VERSION = 1
_NGram = tuple[str, ...]


def ngrams(text: str, n: int) -> Counter[_NGram]:
    """Count the n-grams of words of a text.

    Parameters
    ----------
    text : str
    n : int
        At least 1.

    Returns
    -------
    Counter of tuple of str

    Raises
    ------
    ValueError
        If `n` is below 1.

    Examples
    --------
    >>> ngrams("so it is, so it is", 2)[("so", "it")]
    2
    """
    require_at_least(1, n=n)
    words = unicode_words(text)
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def corpus_distinct(texts: Sequence[str], n: int) -> float:
    """Distinct-n of a system's responses taken together.

    The mean over responses of the scorer `DistinctN` is another figure: each response counts its
    own n-grams there, and short responses hardly ever repeat one.

    Parameters
    ----------
    texts : sequence of str
    n : int
        At least 1.

    Returns
    -------
    float
        Distinct n-grams over all n-grams, from 0 to 1; NaN where there are none.

    Raises
    ------
    ValueError
        If `n` is below 1.

    References
    ----------
    .. [1] J. Li et al. (2016). A Diversity-Promoting Objective Function for Neural Conversation
       Models. NAACL, 110-119. There the divisor is the number of words; for n > 1 the number of
       n-grams, as here, is now usual.

    Examples
    --------
    >>> corpus_distinct(["i do not know", "i do not think so"], 1)
    0.6666666666666666
    """
    counted = [ngrams(text, n) for text in texts]
    total = sum(counts.total() for counts in counted)
    return len(set(chain.from_iterable(counted))) / total if total else float("nan")


class Length(Scorer):
    """Words of the response, and its characters.

    A control: that the direction reads "higher is better" says nothing about quality.

    Examples
    --------
    >>> scores = Length().score([Example(item="1", system="a", response="So it is.")])
    >>> scores[0]["length"].value, scores[0]["length_characters"].value
    (3.0, 9.0)
    """

    name = "length"
    outputs = ("length", "length_characters")

    @property
    def signature(self) -> str:
        return sign("length", unit="words", tokenizer="unicode", version=VERSION)

    def signature_for(self, output: str) -> str:
        """Characters are counted as they are, without a tokenizer.

        Examples
        --------
        >>> Length().signature_for("length_characters")
        'length|unit:characters|version:1'
        """
        if output == "length_characters":
            return sign("length", unit="characters", version=VERSION)
        return super().signature_for(output)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return [
            {
                "length": Score(float(len(unicode_words(example.response)))),
                "length_characters": Score(float(len(example.response))),
            }
            for example in examples
        ]


class DistinctN(Scorer):
    """Distinct n-grams over all n-grams of a response, from 0 to 1.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    ValueError
        If `n` is below 1.

    References
    ----------
    .. [1] J. Li et al. (2016). A Diversity-Promoting Objective Function for Neural Conversation
       Models. NAACL, 110-119.

    Examples
    --------
    >>> scores = DistinctN(n=1).score([Example(item="1", system="a", response="no no yes no")])
    >>> scores[0]["distinct_n"].value
    0.5
    """

    name = "distinct_n"
    outputs = ("distinct_n",)

    def __init__(self, *, n: int = 2) -> None:
        require_at_least(1, n=n)
        self.n = n

    @property
    def signature(self) -> str:
        return sign("distinct", n=self.n, tokenizer="unicode", version=VERSION)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        return [{self.name: _distinct(example.response, self.n)} for example in examples]


class Repetition(Scorer):
    """Share of the n-grams of a response that repeat an earlier one of it, from 0 to 1.

    Parameters
    ----------
    n : int
        At least 1.

    Raises
    ------
    ValueError
        If `n` is below 1.

    References
    ----------
    .. [1] S. Welleck et al. (2020). Neural Text Generation with Unlikelihood Training. ICLR.
       seq-rep-n, equation 9.

    Examples
    --------
    >>> scores = Repetition(n=1).score([Example(item="1", system="a", response="no no yes no")])
    >>> scores[0]["repetition"].value
    0.5
    """

    name = "repetition"
    outputs = ("repetition",)
    lower_is_better = frozenset({"repetition"})

    def __init__(self, *, n: int = 4) -> None:
        require_at_least(1, n=n)
        self.n = n

    @property
    def signature(self) -> str:
        return sign("repetition", n=self.n, tokenizer="unicode", version=VERSION)

    def measure(self, examples: Sequence[Example]) -> list[Scores]:
        distinct = (_distinct(example.response, self.n) for example in examples)
        return [{self.name: score._replace(value=1 - score.value)} for score in distinct]


def _distinct(text: str, n: int) -> Score:
    counts = ngrams(text, n)
    if not counts:
        reason = "no words" if n == 1 else f"fewer than {n} words"
        return undefined(CodedText(reason, code="too_few_words"))
    return Score(len(counts) / counts.total())


_LINES = """
acorn actor airport alley ankle antenna apron arrow attic autumn axle badge bakery balcony
bamboo banjo barrel basket beaver bench bicycle blanket bolt bone border bottle branch brick
bridge broom bubble bucket buffalo button cabbage cable cactus camel candle canyon carpet
castle cement chalk chapel cherry chess chimney circle clay cliff clock cloud coal comet
copper coral cotton crane crater cricket curtain dagger dairy dentist desert diamond dice
dolphin donkey drawer drum eagle elbow elevator engine eraser falcon feather fence ferry
fiddle flannel flute fossil fountain fox frost furnace galaxy garlic gate ginger glacier glove
goat granite grape gravel guitar hammer harbor harvest hedge helmet heron hinge honey hook
horn ice ink iron island ivory jacket jar jelly jungle kettle kidney kite kitten ladder lake
lamp lantern lava lawn leather lemon lever lizard lobster lumber magnet mango map marble
market mask meadow melon mirror mist moss moth motor mountain mule museum mushroom nail
napkin needle nest nickel oak oar oasis olive onion orbit organ oven owl oyster paddle palace
panther parade parrot peach pebble pencil pepper piano pigeon pillow pine pirate planet plum
pocket pond porch potato prairie puddle pulley pumpkin pyramid quarry quartz quilt rabbit
radar raft railway rake raven ribbon rice river roof rope rudder saddle salmon sand saw scale
school shelf shoe silk skeleton sled snail soap spider spoon squirrel stable statue steam
stove straw sugar swamp sword tailor tank tent thread thumb thunder tiger tile tin toad
tomato tower tractor tray trumpet tulip tunnel turtle umbrella valley velvet village violin
volcano wagon walnut walrus watch wax whale wheat whistle willow window wolf wool yarn zebra
borrow climb count dig divide erase fold gather hang hurry knit lift measure paint plant
polish pour print rescue roll sail scrub shake sharpen sketch slide squeeze stack stretch
swim swing throw tie trace trade twist unlock vanish wander weave weigh whisper wrap
ancient bitter blunt brave brittle broad cheap clumsy crooked damp dense dusty eager faint
fierce flat fragile gentle hollow humid loud narrow odd pale rapid rough rusty shallow silent
sleepy slippery smooth sour steep striped sturdy tame tiny vast violet wooden yellow
"""
WORDS = tuple(_LINES.split())
