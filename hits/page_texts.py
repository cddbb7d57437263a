"""The worker's page in other languages: the page is in the language of its study, not of the
browser, so that its words stand in a table of their own. To add a language, add its table; a
test says what is missing."""

from types import MappingProxyType

from django.conf import settings
from django.utils.translation import gettext

SOURCE = "en"
RIGHT_TO_LEFT = frozenset({"ar"})

GERMAN = {
    "rating": "Bewertung",
    "category": "Kategorie",
    "comparison": "Vergleich",
    "selection": "Auswahl",
    "written answer": "schriftliche Antwort",
    "Responses to judge: {n}.": "Zu bewertende Antworten: {n}.",
    "Products to judge: {n}.": "Zu bewertende Produkte: {n}.",
    "Questions: {names}.": "Fragen: {names}.",
    "About {minutes} min.": "Etwa {minutes} min.",
    "This page needs JavaScript: without it no answer can be given. Allow JavaScript for this page and load it again, or return the HIT.":
        "Diese Seite braucht JavaScript: ohne es kann keine Antwort gegeben werden. Erlauben Sie JavaScript für diese Seite und laden Sie sie neu, oder geben Sie den HIT zurück.",
    "Before you begin": "Bevor Sie beginnen",
    "I agree": "Ich stimme zu",
    "I do not agree": "Ich stimme nicht zu",
    "Then return the HIT; that costs you nothing, and nothing is kept.":
        "Dann geben Sie den HIT zurück; das schadet Ihnen nicht, und nichts wird aufbewahrt.",
    "Instructions": "Anleitung",
    "Instructions and examples": "Anleitung und Beispiele",
    "Good example": "Gutes Beispiel",
    "Bad example": "Schlechtes Beispiel",
    "Questions about all of it": "Fragen zum Ganzen",
    "Why did you choose as you did?": "Warum haben Sie so gewählt?",
    "Why did you choose as you did? (optional)": "Warum haben Sie so gewählt? (freiwillig)",
    "Why did you rate as you did?": "Warum haben Sie so bewertet?",
    "of at least {least} characters": "von mindestens {least} Zeichen",
    "You may paste; that you did is noted.": "Sie dürfen einfügen; es wird vermerkt.",
    "Needs an answer": "Hier fehlt eine Antwort",
    "Reasons": "Gründe",
    "Comments for the requester (optional)": "Anmerkungen für die Auftraggeber (freiwillig)",
    "Go to the first missing": "Zur ersten fehlenden Antwort",
    "Submit": "Absenden",
    "Not sent yet. Answers missing: {n}": "Noch nicht gesendet. Fehlende Antworten: {n}",
    "Sending…": "Wird gesendet …",
    "Sent": "Gesendet",
    "This is a preview. Accept the HIT to begin.":
        "Dies ist eine Vorschau. Nehmen Sie den HIT an, um zu beginnen.",
    "This page was opened outside a marketplace: nothing can be sent from here.":
        "Diese Seite wurde außerhalb eines Marktplatzes geöffnet: von hier kann nichts gesendet werden.",
    "Nothing more can be sent from this page.": "Von dieser Seite kann nichts mehr gesendet werden.",
    "This is what you sent.": "Das haben Sie gesendet.",
    "Response {letter}": "Antwort {letter}",
    "Speaker {letter}": "Person {letter}",
    "Product {letter}": "Produkt {letter}",
    "{question}, response {letter}": "{question}, Antwort {letter}",
    "{question}, product {letter}": "{question}, Produkt {letter}",
    "{n} of {total} ratings given": "{n} von {total} Bewertungen gegeben",
    "{n} of {total} answers given": "{n} von {total} Antworten gegeben",
    "Tick at least one, or “None of these would do”":
        "Kreuzen Sie mindestens eine an, oder „Keine davon käme in Frage“",
    "None would do": "Keine käme in Frage",
    "{n} chosen": "{n} gewählt",
    "Why would this one do? {title}": "Warum käme diese in Frage? {title}",
    "Your reason has {n} of at least {least} characters":
        "Ihre Begründung hat {n} von mindestens {least} Zeichen",
    "The picture did not load": "Das Bild wurde nicht geladen",
    "A picture is still loading": "Ein Bild wird noch geladen",
    "Load again": "Neu laden",
    "Report": "Melden",
    "Reported. If it does not load again, return the HIT; that costs you nothing.":
        "Gemeldet. Lädt es auch nochmals nicht, geben Sie den HIT zurück; das schadet Ihnen nicht.",
    "Tick this one": "Diese ankreuzen",
    "Take the tick away": "Kreuz entfernen",
    "Not answered yet": "Noch nicht beantwortet",
    "{value} on a scale from {min} to {max}": "{value} auf einer Skala von {min} bis {max}",
    "Less: {question}": "Weniger: {question}",
    "More: {question}": "Mehr: {question}",
    "{question}: a number from {min} to {max}": "{question}: eine Zahl von {min} bis {max}",
    "{question}: a whole number from {min} to {max}":
        "{question}: eine ganze Zahl von {min} bis {max}",
    "{question}: {n} of at least {least} characters":
        "{question}: {n} von mindestens {least} Zeichen",
    "{question}: choose from {least} to {most}": "{question}: wählen Sie {least} bis {most}",
    "{question}: two have the same place": "{question}: zwei haben denselben Platz",
    "Place of response {letter}": "Platz der Antwort {letter}",
    "Place of product {letter}": "Platz des Produkts {letter}",
    "Equally good": "Gleich gut",
    "Yes": "Ja",
    "I can’t tell": "Kann ich nicht sagen",
    "No": "Nein",
    "None of these": "Keine davon",
    "Best": "Am besten",
    "Worst": "Am schlechtesten",
    "Place": "Platz",
    "1 is the best; two may share a place.": "1 ist am besten; zwei dürfen sich einen Platz teilen.",
    "1 is the best; each place once.": "1 ist am besten; jeder Platz einmal.",
    "Judge every response below: mark your answer on each line. A line has no value until you mark it.":
        "Beurteilen Sie jede Antwort: markieren Sie Ihr Urteil auf jeder Linie. Eine Linie hat keinen Wert, bevor Sie sie markieren.",
    "Judge every response below.": "Beurteilen Sie jede Antwort.",
    "Judge every product below: mark your answer on each line. A line has no value until you mark it.":
        "Beurteilen Sie jedes Produkt: markieren Sie Ihr Urteil auf jeder Linie. Eine Linie hat keinen Wert, bevor Sie sie markieren.",
    "Judge every product below.": "Beurteilen Sie jedes Produkt.",
    "Conversation": "Gespräch",
    "Context": "Zusammenhang",
    "Picture that belongs to the context": "Bild zum Zusammenhang",
    "Reference": "Vergleich",
    "Last turn": "Letzter Beitrag",
    "Whole conversation": "Ganzes Gespräch",
    "All of the context": "Ganzer Zusammenhang",
    "Close": "Schließen",
    "Shortcut keys": "Tastenkürzel",
    "Answer the marked question": "Die markierte Frage beantworten",
    "Select a product": "Ein Produkt ankreuzen",
    "Choose the best, or the next in order":
        "Die beste wählen, oder die nächste in der Reihenfolge",
    "Choose the worst": "Die schlechteste wählen",
    "Next question": "Nächste Frage",
    "Previous question": "Vorige Frage",
    "Use shortcut keys": "Tastenkürzel verwenden",
    "Picture of this response": "Bild zu dieser Antwort",
    "Picture of this product": "Bild dieses Produkts",
    "(empty response)": "(leere Antwort)",
    "Target": "Ziel",
    "Enlarge the target: {title}": "Ziel vergrößern: {title}",
    "Tick every one that would do.": "Kreuzen Sie alle an, die in Frage kämen.",
    "Space ticks, Z enlarges the picture.":
        "Die Leertaste kreuzt an, Z vergrößert das Bild.",
    "Alternative without a title": "Alternative ohne Titel",
    "(no title)": "(ohne Titel)",
    "Enlarge: {title}": "Vergrößern: {title}",
    "None of these would do": "Keine davon käme in Frage",
    "Target and alternative": "Ziel und Alternative",
    "Larger": "Größer",
    "This is practice, and it is paid. Answer as in the real work; then read which answers are right and why, and hand them in.":
        "Dies ist eine Übung, und sie wird bezahlt. Antworten Sie wie bei der eigentlichen Arbeit; lesen Sie dann, welche Antworten richtig sind und warum, und geben Sie sie ab.",
    "Check my answers": "Meine Antworten prüfen",
    "Right": "Richtig",
    "Not right. Right would be: {right}": "Nicht richtig. Richtig wäre: {right}",
    "Passed: {n} of {total} answers are right": "Bestanden: {n} von {total} Antworten sind richtig",
    "Not passed: {n} of {total} answers are right, and {needed} are needed":
        "Nicht bestanden: {n} von {total} Antworten sind richtig, {needed} sind nötig",
    "Read what is said beside each answer, then hand them in. You can do the other HITs once they have been looked at.":
        "Lesen Sie, was bei jeder Antwort steht, und geben Sie sie dann ab. Die anderen HITs stehen Ihnen offen, sobald sie angesehen wurden.",
    "Read what is said beside each answer, then hand them in. You are paid all the same, and can practise at another HIT if there is one.":
        "Lesen Sie, was bei jeder Antwort steht, und geben Sie sie dann ab. Sie werden trotzdem bezahlt und können an einem anderen HIT üben, wenn es einen gibt.",
    "Read what is said beside each answer, then hand them in. You are paid all the same, and can practise at another HIT.":
        "Lesen Sie, was bei jeder Antwort steht, und geben Sie sie dann ab. Sie werden trotzdem bezahlt und können an einem anderen HIT üben.",
    "Read what is said beside each answer, then hand them in. You are paid all the same. No practice is left for you, so the HITs that come after it stay closed to you; all your other work is as before.":
        "Lesen Sie, was bei jeder Antwort steht, und geben Sie sie dann ab. Sie werden trotzdem bezahlt. Für Sie gibt es keine weitere Übung, daher bleiben Ihnen die HITs danach verschlossen; an Ihrer übrigen Arbeit ändert sich nichts.",
    "Hand in": "Abgeben",
    "This page records when you begin and leave it, how much you paste, how fast you type and which questions come into view.":
        "Diese Seite hält fest, wann Sie beginnen und sie verlassen, wie viel Sie einfügen, wie schnell Sie tippen und welche Fragen Sie sehen.",
}  # fmt: skip
ARABIC = {
    "rating": "تقييم",
    "category": "فئة",
    "comparison": "مقارنة",
    "selection": "اختيار",
    "written answer": "إجابة مكتوبة",
    "Responses to judge: {n}.": "الردود المطلوب تقييمها: {n}.",
    "Products to judge: {n}.": "المنتجات المطلوب تقييمها: {n}.",
    "Questions: {names}.": "الأسئلة: {names}.",
    "About {minutes} min.": "نحو {minutes} د.",
    "This page needs JavaScript: without it no answer can be given. Allow JavaScript for this page and load it again, or return the HIT.":
        "تحتاج هذه الصفحة إلى JavaScript، وبدونه لا يمكن تقديم أي إجابة. اسمح به لهذه الصفحة وأعد تحميلها، أو أعد المهمة.",
    "Before you begin": "قبل أن تبدأ",
    "I agree": "أوافق",
    "I do not agree": "لا أوافق",
    "Then return the HIT; that costs you nothing, and nothing is kept.":
        "إذن أعد المهمة؛ لن يكلفك ذلك شيئًا، ولن يُحفظ شيء.",
    "Instructions": "التعليمات",
    "Instructions and examples": "التعليمات والأمثلة",
    "Good example": "مثال جيد",
    "Bad example": "مثال سيئ",
    "Questions about all of it": "أسئلة عن الكل",
    "Why did you choose as you did?": "لماذا اخترت هذا الاختيار؟",
    "Why did you choose as you did? (optional)": "لماذا اخترت هذا الاختيار؟ (اختياري)",
    "Why did you rate as you did?": "لماذا قيّمت هذا التقييم؟",
    "of at least {least} characters": "من {least} حرفًا على الأقل",
    "You may paste; that you did is noted.": "يمكنك اللصق؛ وسيُسجَّل أنك فعلت.",
    "Needs an answer": "تنقص الإجابة هنا",
    "Reasons": "الأسباب",
    "Comments for the requester (optional)": "ملاحظات لصاحب المهمة (اختياري)",
    "Go to the first missing": "اذهب إلى أول إجابة ناقصة",
    "Submit": "إرسال",
    "Not sent yet. Answers missing: {n}": "لم يُرسل بعد. الإجابات الناقصة: {n}",
    "Sending…": "جارٍ الإرسال…",
    "Sent": "أُرسل",
    "This is a preview. Accept the HIT to begin.": "هذه معاينة. اقبل المهمة لتبدأ.",
    "This page was opened outside a marketplace: nothing can be sent from here.":
        "فُتحت هذه الصفحة خارج السوق: لا يمكن إرسال شيء من هنا.",
    "Nothing more can be sent from this page.": "لا يمكن إرسال شيء آخر من هذه الصفحة.",
    "This is what you sent.": "هذا ما أرسلته.",
    "Product {letter}": "المنتج {letter}",
    "Speaker {letter}": "المتحدث {letter}",
    "Response {letter}": "الرد {letter}",
    "{question}, product {letter}": "{question}، المنتج {letter}",
    "{question}, response {letter}": "{question}، الرد {letter}",
    "{n} of {total} answers given": "أُعطيت {n} من {total} إجابات",
    "{n} of {total} ratings given": "أُعطي {n} من {total} تقييمات",
    "Tick at least one, or “None of these would do”": "ضع علامة على واحد على الأقل، أو «لا يصلح أي منها»",
    "None would do": "لا يصلح أي منها",
    "{n} chosen": "اختير {n}",
    "Why would this one do? {title}": "لماذا يصلح هذا؟ {title}",
    "Your reason has {n} of at least {least} characters": "في تعليلك {n} من {least} حرفًا على الأقل",
    "The picture did not load": "لم تُحمَّل الصورة",
    "A picture is still loading": "ما زالت صورة قيد التحميل",
    "Load again": "أعد التحميل",
    "Report": "أبلغ",
    "Reported. If it does not load again, return the HIT; that costs you nothing.":
        "أُبلغ عنها. إن لم تُحمَّل ثانية فأعد المهمة؛ لن يكلفك ذلك شيئًا.",
    "Tick this one": "ضع علامة على هذا",
    "Take the tick away": "أزل العلامة",
    "Not answered yet": "لم يُجب عنه بعد",
    "{value} on a scale from {min} to {max}": "{value} على مقياس من {min} إلى {max}",
    "Less: {question}": "أقل: {question}",
    "More: {question}": "أكثر: {question}",
    "{question}: a number from {min} to {max}": "{question}: عدد من {min} إلى {max}",
    "{question}: a whole number from {min} to {max}": "{question}: عدد صحيح من {min} إلى {max}",
    "{question}: {n} of at least {least} characters": "{question}: {n} من {least} حرفًا على الأقل",
    "{question}: choose from {least} to {most}": "{question}: اختر من {least} إلى {most}",
    "{question}: two have the same place": "{question}: اثنان في المرتبة نفسها",
    "Place of product {letter}": "مرتبة المنتج {letter}",
    "Place of response {letter}": "مرتبة الرد {letter}",
    "Equally good": "متساويان في الجودة",
    "Yes": "نعم",
    "I can’t tell": "لا أستطيع الحكم",
    "No": "لا",
    "None of these": "لا شيء منها",
    "Best": "الأفضل",
    "Worst": "الأسوأ",
    "Place": "المرتبة",
    "1 is the best; two may share a place.": "‏1 هي الأفضل؛ يمكن أن يشترك اثنان في مرتبة.",
    "1 is the best; each place once.": "‏1 هي الأفضل؛ كل مرتبة مرة واحدة.",
    "Judge every response below: mark your answer on each line. A line has no value until you mark it.":
        "قيّم كل رد أدناه: حدّد إجابتك على كل خط. لا قيمة للخط قبل أن تحدّدها.",
    "Judge every product below.": "قيّم كل منتج أدناه.",
    "Judge every product below: mark your answer on each line. A line has no value until you mark it.":
        "قيّم كل منتج أدناه: حدّد إجابتك على كل خط. لا قيمة للخط قبل أن تحدّدها.",
    "Judge every response below.": "قيّم كل رد أدناه.",
    "Conversation": "المحادثة",
    "Context": "السياق",
    "Picture that belongs to the context": "صورة تخص السياق",
    "Reference": "المرجع",
    "Last turn": "آخر دور",
    "All of the context": "السياق كاملًا",
    "Whole conversation": "المحادثة كاملة",
    "Close": "إغلاق",
    "Shortcut keys": "الاختصارات",
    "Answer the marked question": "الإجابة عن السؤال المحدد",
    "Select a product": "تحديد منتج",
    "Choose the best, or the next in order": "اختيار الأفضل أو التالي في الترتيب",
    "Choose the worst": "اختيار الأسوأ",
    "Next question": "السؤال التالي",
    "Previous question": "السؤال السابق",
    "Use shortcut keys": "استخدام الاختصارات",
    "Picture of this product": "صورة هذا المنتج",
    "Picture of this response": "صورة هذا الرد",
    "(empty response)": "(رد فارغ)",
    "Target": "المطلوب",
    "Enlarge the target: {title}": "كبّر المطلوب: {title}",
    "Tick every one that would do.": "ضع علامة على كل ما يصلح.",
    "Space ticks, Z enlarges the picture.": "مفتاح المسافة يضع العلامة، وZ يكبّر الصورة.",
    "Alternative without a title": "بديل بلا عنوان",
    "(no title)": "(بلا عنوان)",
    "Enlarge: {title}": "كبّر: {title}",
    "None of these would do": "لا يصلح أي منها",
    "Target and alternative": "المطلوب والبديل",
    "Larger": "أكبر",
    "This is practice, and it is paid. Answer as in the real work; then read which answers are right and why, and hand them in.":
        "هذا تدريب مدفوع الأجر. أجب كما في العمل الحقيقي، ثم اقرأ أي الإجابات صحيحة ولماذا، وسلّمها.",
    "Check my answers": "تحقّق من إجاباتي",
    "Right": "صحيح",
    "Not right. Right would be: {right}": "غير صحيح. الصحيح هو: {right}",
    "Passed: {n} of {total} answers are right": "نجحت: {n} من {total} إجابات صحيحة",
    "Not passed: {n} of {total} answers are right, and {needed} are needed":
        "لم تنجح: {n} من {total} إجابات صحيحة، والمطلوب {needed}",
    "Read what is said beside each answer, then hand them in. You can do the other HITs once they have been looked at.":
        "اقرأ ما كُتب بجانب كل إجابة ثم سلّمها. يمكنك أداء المهام الأخرى بعد الاطلاع عليها.",
    "Read what is said beside each answer, then hand them in. You are paid all the same, and can practise at another HIT if there is one.":
        "اقرأ ما كُتب بجانب كل إجابة ثم سلّمها. ستحصل على أجرك على أي حال، ويمكنك التدرّب على مهمة أخرى إن وُجدت.",
    "Read what is said beside each answer, then hand them in. You are paid all the same, and can practise at another HIT.":
        "اقرأ ما كُتب بجانب كل إجابة ثم سلّمها. ستحصل على أجرك على أي حال، ويمكنك التدرّب على مهمة أخرى.",
    "Read what is said beside each answer, then hand them in. You are paid all the same. No practice is left for you, so the HITs that come after it stay closed to you; all your other work is as before.":
        "اقرأ ما كُتب بجانب كل إجابة ثم سلّمها. ستحصل على أجرك على أي حال. لم يبقَ لك تدريب آخر، لذا تبقى المهام التي تليه مغلقة أمامك؛ ولا يتغير شيء في بقية عملك.",
    "Hand in": "تسليم",
    "This page records when you begin and leave it, how much you paste, how fast you type and which questions come into view.":
        "تسجّل هذه الصفحة متى تبدأ ومتى تغادرها، وكم تلصق، وسرعة كتابتك، وأي الأسئلة ظهرت أمامك.",
}  # fmt: skip
TABLES = MappingProxyType({"de": GERMAN, "ar": ARABIC})


def page_language(language: str) -> str:
    base = language.split("-")[0].lower()
    return base if base in TABLES else SOURCE


def page_text(text: str, language: str) -> str:
    if language == SOURCE and settings.PSEUDO_LOCALE:
        return gettext(text)
    return TABLES.get(language, {}).get(text, text)
