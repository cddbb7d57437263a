"""The words around a score in a judge's reply, as patterns; English first, common others after."""

import re

FINAL = re.compile(
    r"\b(?:final|finale|endgültig\w*|definitiv\w*|итогов\w*)\b|最终|最終|최종|\bboxed", re.I
)
OVERALL = re.compile(
    r"\b(?:overall|total|average|mean|gesamt\w*|globale?|general)\b|总体|総合", re.I
)

NOUNS = (
    r"scores?|(?:response|reply|level)(?=\s*:)|ratings?|grades?|marks?|points?|value|result|answer|"
    "output|evaluation|assessment|verdict|judge?ment|boxed|bewertung|punktzahl|punkte|note|notation|évaluation|"
    "puntuación|calificación|valoración|nota|pontuação|avaliação|punteggio|voto|valutazione|cijfer|"
    "beoordeling|betyg|poäng|ocena|puan|skor|điểm|оценка|оценку|балл|рейтинг|"
    "التقييم|الدرجة|تقييم|अंक|रेटिंग"
)
# Of languages that write words without spaces.
JOINED_NOUNS = "评分|得分|分数|打分|评价|評価|評点|評分|得点|点数|スコア|점수|평점|평가"
VERBS = (
    r"give|gave|giving|rate|rated|rates|score|scored|grade|graded|assign(?:ed)?|award(?:ed)?|"
    r"deserves?|earns?|earned|receives?|gets?|merits?|choose|chose|select(?:ed)?|settle on|"
    r"go with|(?:would|i['’]d|must|i) say|"
    r"(?:it|this|that|response|reply|dialogue|conversation|summary)(?:'s|’s|\s+is)|"
    r"gebe|vergebe|bewerte|donne|attribue|doy|daría|dou|daria|do|darei|ставлю|поставил\w*"
)
JOINED_VERBS = "打|给|給"
# Words that may stand between a label and its number.
FILLERS = (
    r"is|was|are|be|would|should|will|of|as|at|an?(?=\s)|the|this|that|it|its|with|for|to|in|on|"
    r"only|about|around|roughly|approximately|approx|circa|therefore|thus|hence|simply|just|probably|"
    r"likely|equals?|my|me|score|rating|grade|solid|strong|weak|clear|low|high|perfect|"
    r"from|response|reply|answer|turn|dialogue|conversation|summary|text|aspect|value|"
    r"ist|eine?|einer|mit|beträgt|für|est|de|une?|du|es|una?|der|die|das|diese\w*|antwort|"
    r"от|è|é|cette|réponse|esta|respuesta|resposta|risposta|este|это\w*|этому|ответ\w*|составляет"
)
JOINED_FILLERS = "为|是|は|が|を|这个|回答|回复|다음과|같습니다|은|는"

LEADS = (
    "my the a an this that final overall total numeric numerical integer single your its our of "
    "with and so therefore thus hence i give assign rate would get gets receives deserves earns as "
    "is evaluation quality response dialogue conversation summary text following resulting fair "
    "moderate high low solid strong weak perfect for average suggested assigned "
    "die der das meine eine einer einem la le ma mi il mia el una um uma minha o e моя мой "
    "итоговая mon une or"
)
# A noun after any other word is of something else: "fluency score", "maximum score".
BEFORE_NOUNS = frozenset(LEADS.split())
# In the clause before a number: it is denied, supposed or compared, and not given.
NOT_MEANT = re.compile(
    r"\b(?:not|never|cannot|unable|without|no|nor|isn['’]t|n['’]t|if|unless|instead|rather|than|"
    r"would (?:need|require|have)|to (?:get|earn|reach|receive|achieve|deserve|merit|score)|"
    r"max(?:imum)?|min(?:imum)?|highest|lowest|possible|previous|earlier|confidence|threshold|"
    r"at least|at most|above|below|over|under|nicht|kein\w*|ne|pas|non|não|nunca|не)\b|"
    r"n['’]t\b|不|ない",
    re.I,
)
# In a sentence before a number: somebody else's rating, or one of something else.
OTHERS = re.compile(
    r"\b(?:users?|speakers?|customers?|critics?|reviewers?|movie|film|book|song|game|show|team|he|she|"
    r"they)(?:['’]s)?\s+(?:\w+\s+){0,2}?(?:has|had|have|gave|gives?|says?|said|got|gets?|rated?|rates|"
    r"ratings?|scored?|scores)\b",
    re.I,
)
# Words before a fraction that need no other label, as in "I think 4/5".
HEDGE = re.compile(
    r"\b(?:think|believe|guess|maybe|perhaps|probably|about|around|roughly|approximately|an?|solid|"
    r"strong|weak|clear|fair)\s+$",
    re.I,
)
SUPPOSED = re.compile(r"\b(?:if|unless|wenn|falls|si|se|если)\b", re.I)
CORRECTION = re.compile(
    r"\b(?:actually|correction|corrected|revised?|i mean|second thoughts?|changed? to|wait)\b", re.I
)
OTHER_VALUE = re.compile(r"[)\]*_]*\s*[:=]\s*[*_]*\d|[)\]*_]*\s*(?:→|->|=>)\s*[*_]*\d")
CONCLUSION = re.compile(r"\b(?:so|thus|therefore|hence|overall)\s*$", re.I)
# A number after these names a part of the text.
REFERENCES = re.compile(
    r"\b(?:turns?|criteri(?:on|a)|steps?|lines?|items?|points?|sentences?|options?|rules?|"
    r"examples?|figures?|sections?|no|number|facts?|messages?|utterances?|paragraphs?|"
    r"questions?|parts?|versions?|out\s+of\s+\w+)\W*$",
    re.I,
)

UNITS = (
    r"(?:points?|pts?\.?|stars?|marks?|punkten?|punti|puntos|pontos|étoiles?|estrellas?|балл\w*)\b"
)
JOINED_UNITS = "分|点|점|星|★|⭐|️⃣"
OUT_OF = r"out\s+of|of|over|von|sur|de|su|van|op|av|na|из|من"
FRACTION = re.compile(
    rf"[*_]*\s*(?:{UNITS}|{JOINED_UNITS})?\s*(?:[/⁄∕]|\b(?:{OUT_OF})\b)\s*"
    r"(?:an?\s+|the\s+)?(?:(?:possible|maximum|total)\s+)?(?:of\s+)?(?P<whole>\d+(?:\.\d+)?)"
    rf"(?![A-Za-z0-9_/.]*[A-Za-z0-9_/])(?:\s*(?:{UNITS}|{JOINED_UNITS}))?",
    re.I,
)
PERCENT = re.compile(r"\s*(?:%|％|per\s?cent\b|prozent\b|pour\s?cent\b|por\s?ciento\b)", re.I)
JOINS = r"[-–—~〜]|\b(?:to|or|and|bis|oder|und|à|ou|et|y|o|e|до|или|и)\b|到|至|或|から"
# What a number of a scale means, as in "1 (poor) to 5 (excellent)".
MEANING = r"[*_]*\s*[(\[][^()\[\]\n\d]{1,40}[)\]][*_]*"
RANGE_SIGN = rf"(?:up[ \t]+)?(?:{JOINS})[ \t]*(?:(?:maybe|possibly|perhaps|even)\s+)?(?:an?\s+)?"
RANGE_AFTER = re.compile(rf"[*_]*(?:{MEANING})?[ \t*_(]*{RANGE_SIGN}[-−]?\d", re.I)
RANGE_BEFORE = re.compile(
    rf"(?:\d[*_]*(?:{MEANING})?[*_ \t]*{RANGE_SIGN}|\b(?:between|zwischen|entre|tra|между)\s+)$",
    re.I,
)
BETWEEN = re.compile(r"\b(?:between|zwischen|entre|tra|между)\s+$", re.I)
SERIES_AFTER = re.compile(
    r"[ \t*_\"'\])}]*(?:[,;|&+]|[ \t])[ \t*_\"'\[({]*[-−]?\d+(?:\.\d+)?"
    r"(?=[\s*_\"'\])}]*(?:[,;|&.]|\n|$))"
)
REASONS = (
    r"because|since|as|for|on|overall|given|due|based|though|although|but|while|which|here|in|with|"
    r"and|out of [a-z]+|seems|appears|is (?:appropriate|fair|fitting|justified|suitable|warranted)|"
    r"weil|denn|da|für|pour|car|parce|porque|por|perché|per|потому|так|"
    r"Rationale|Reason|Reasoning|Explanation|Justification|Comments?|Analysis|The|This|It|I"
)
END = re.compile(
    r"[*_`\"'”’»\])}$]*"
    rf"(?:(?:\s*(?:{UNITS})|\s*(?:{JOINED_UNITS}))?[*_`\"'”’»\])}}]*"
    r"(?:\s*$|\s*\n|\s*[.,;!?…|<(。、，！；—–]|\s*-(?!\d))|"
    rf"\s*(?:{JOINED_UNITS})|\s+(?:{REASONS})\b|です|입니다)"
)
EXTREMES = "highest|lowest|best|worst|top|max(?:imum|imal)?|min(?:imum|imal)?|perfect|ideal"
GIVEN_AFTER = re.compile(
    rf"\s+(?:is|would be) (?:my|the) (?:(?!(?:{EXTREMES})\b)\w+ )?(?:{NOUNS})\b", re.I
)
# As in "3: it answers", which may be the answer or a line of the criteria.
LEVEL_END = re.compile(r"[*_`\"'”’»\])}]*\s*[:=]")


def label_pattern(aspect: str) -> re.Pattern[str]:
    """A pattern for a label and the words between it and a number, at the end of a text."""
    letter = r"A-Za-zÀ-ɏͰ-ӿ0-9"
    name = r"[\s_-]*".join(map(re.escape, re.split(r"[\s_-]+", aspect.strip())))
    named = rf"(?P<aspect>(?<![{letter}]){name}(?![{letter}]))" if aspect else ""
    nouns = rf"(?P<noun>(?<![{letter}])(?:{NOUNS})(?![{letter}])|(?:{JOINED_NOUNS}))"
    verbs = rf"(?:(?<![{letter}_])(?:{VERBS})(?![{letter}_])|(?:{JOINED_VERBS}))"
    again = rf"|(?P<again>{name})" if aspect else ""
    labels = "|".join(part for part in (named, nouns, verbs) if part)
    words = rf"(?<![{letter}])(?:{FILLERS})(?![{letter}])|{JOINED_FILLERS}"
    signs = r"[*_`\"'“”‘’«»()\[\]{}|=→⇒:≈~–—$\\-]|(?<=[\w\"'=\n-])>"
    between = rf"(?:\s++|{signs}|\.{{2,}}|{words}{again}){{0,40}}+"
    return re.compile(rf"(?:{labels})(?P<between>{between})$", re.I)
