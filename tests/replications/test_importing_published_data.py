import gzip
import json
import math

import pytest

from annotation.exceptions import ImportRefused
from annotation.frames import judgment_frame
from annotation.models import Candidate, Judgment, Study, Submission
from metrics import models, study_files
from tests.annotation.importing import assert_refused, command_output, numbers_in
from tests.codes import refused

pytestmark = pytest.mark.django_db


def response(system, text, *, dialogue=0, naturalness=2.5, **fields):
    return {
        "source": f"hi\nhello {dialogue}\n",
        "context": "cats sleep a lot\n",
        "system_id": system,
        "system_output": f"{text} ",
        "scores": {"naturalness": naturalness, "overall": 4},
        **fields,
    }


LONG = "m" * 59


@pytest.fixture
def as_json(tmp_path):
    def written(value, name="data.json"):
        path = tmp_path / name
        path.write_text(json.dumps(value, indent=0))
        return path

    return written


def judgments():
    rows = Judgment.objects.order_by("candidate__item__key", "candidate__key", "question__position")
    of_candidate = ("candidate__item__key", "candidate__key")
    fields = ("submission__annotator__pseudonym", *of_candidate, "question__name", "value")
    return list(rows.values_list(*fields))


def scores(study):
    return {
        (row.metric, row.item, row.candidate): None if math.isnan(row.value) else row.value
        for row in study_files.score_frame(Study.objects.get(slug=study)).itertuples()
    }


class TestTopicalChat:
    def test_responses_to_one_dialogue_are_the_candidates_of_an_item(self, as_json):
        path = as_json([response("a", "yes"), response("b", "no"), response("a", "so", dialogue=1)])
        output = command_output("import_topical_chat", path, study="tc")
        assert numbers_in(output)[:2] == [2, 2]
        candidates = Candidate.objects.order_by("item__key", "key").values_list(
            "item__key", "key", "system", "text"
        )
        assert list(candidates) == [
            ("0", "a", "a", "yes"),
            ("0", "b", "b", "no"),
            ("1", "a", "a", "so"),
        ]
        item = Study.objects.get().items.first()
        assert item.context == "hi\nhello 0\n\nFact: cats sleep a lot"
        command_output("import_topical_chat", path, study="spoken", speakers=True)
        spoken = Study.objects.get(slug="spoken").items.first()
        assert spoken.context == "A: hi\nB: hello 0\n\nFact: cats sleep a lot"

    def test_the_raters_means_are_one_annotators_judgments(self, as_json):
        responses = [response("a", "yes"), response("b", "x", dialogue=1, context="_nofact\n")]
        command_output("import_topical_chat", as_json(responses), study="tc")
        assert judgments()[:2] == [
            ("mean-of-raters", "0", "a", "naturalness", 2.5),
            ("mean-of-raters", "0", "a", "overall", 4),
        ]
        scales = Study.objects.get().questions.values_list("name", "scale_min", "scale_max")
        assert ("groundedness", 0, 1) in list(scales)
        # Without a fact, the context is the dialogue alone.
        assert Study.objects.get().items.last().context == "hi\nhello 1"
        path = as_json([response("a", "yes", dialog_id=17)])
        command_output("import_topical_chat", path, study="named")
        assert Study.objects.get(slug="named").items.get().key == "17"

    def test_other_objects_of_numbers_are_metrics_scores(self, as_json):
        path = as_json([response("a", "yes", unieval={"naturalness": 0.75, "coherence": None})])
        command_output("import_topical_chat", path, study="tc")
        assert scores("tc") == {
            ("unieval_naturalness", "0", "a"): 0.75,
            ("unieval_coherence", "0", "a"): None,
        }
        before = (judgments(), scores("tc"))
        assert numbers_in(command_output("import_topical_chat", path, study="tc"))[:2] == [0, 1]
        assert (judgments(), scores("tc")) == before

    def test_the_mean_of_gevals_samples_is_a_score_under_its_mode(self, as_json, write):
        path = as_json([response("a", "yes", item_id=3), response("b", "no", item_id=4)])
        sample = {"item_id": 3, "mode": "geval", "dim": "naturalness", "scores": [1, 2, 2, 3]}
        lines = [sample, sample | {"mode": "plain", "scores": []}]
        geval = write(*map(json.dumps, lines), name="geval.jsonl")
        command_output("import_topical_chat", path, study="tc", geval=geval)
        means = {run.signature: run.scores.get().value for run in models.ScoringRun.objects.all()}
        assert means == {
            "imported|mode:geval|weights:sampled|file:geval.jsonl": 2,
            "imported|mode:plain|weights:sampled|file:geval.jsonl": None,
        }

    @pytest.mark.parametrize(
        ("entries", "code", "line", "field"),
        [
            ([response("a", "x", scores=3)], "not_object", 2, "scores"),
            ([response("a", "x", naturalness="good")], "not_number", 2, "scores.naturalness"),
            ([response("a", "x", scores={"beauty": 1})], "unknown_question", 2, "scores"),
            ([response("a", "x"), response("a", "y")], "repeated_response", 12, "system_id"),
            ([{"source": "x"}], "missing_field", 2, "system_id"),
            (
                [response("a", "x", dialog_id=1), response("b", "x", dialog_id=1, source="other")],
                "differs",
                13,
                "source",
            ),
            ([response("a", "x", unieval={LONG: 1})], "too_long", 2, f"unieval.{LONG}"),
            ([response("a", "x", scores={"overall": 6})], "off_scale", 2, "scores.overall"),
            ([], "no_rows", None, None),
        ],
    )
    def test_what_does_not_fit_is_refused(self, as_json, entries, code, line, field):
        assert_refused("import_topical_chat", as_json(entries), code, line=line, field=field)

    @pytest.fixture
    def published(self, shared_data):
        folder = shared_data / "topical_chat_usr"
        samples = folder / "geval_gpt35_n20.jsonl"
        command_output(
            "import_topical_chat", folder / "topical_chat_usr.json", study="tc", geval=samples
        )
        return Study.objects.get()

    @pytest.mark.shared_data
    def test_the_published_data_has_360_responses_that_correlate_as_published(self, published):
        assert Candidate.objects.count() == 360
        assert Judgment.objects.count() == 360 * 6
        assert models.ScoringRun.objects.filter(metric__startswith="unieval_").count() == 6
        geval = models.ScoringRun.objects.filter(metric__startswith="geval_").counted()
        assert sum(run.n_scores for run in geval) == 10_000
        human = judgment_frame(published).astype({"item": str, "candidate": str, "question": str})
        scored = study_files.score_frame(published)
        scored = scored[scored["signature"].str.contains("mode:geval|", regex=False)]
        correlations = {}
        for question, judged in human.groupby("question"):
            run = scored[scored["metric"] == f"geval_{question}"]
            both = judged.merge(run, on=["item", "candidate"])
            if len(both):
                correlations[question] = round(both["value_x"].corr(both["value_y"]), 3)
        assert correlations == {
            "naturalness": 0.393,
            "coherence": 0.468,
            "engagingness": 0.549,
            "groundedness": 0.311,
        }


DIALOGUES = (
    json.dumps({"dialog_id": 0, "chatbot": "bot1", "text": "User: hi\nSystem: hello\n"}),
    json.dumps({"dialog_id": 1, "chatbot": "bot2", "text": "User: hm\nSystem: what?\n"}),
)
RATINGS = (
    "dialog_id,chatbot,rater_slot,overall,consistent,flow_score",
    "0,bot1,0,4,1,1.5",
    "0,bot1,1,5,N/A,1.5",
    "1,bot2,0,2,,1.25",
)


class TestDstc9:
    @pytest.fixture
    def dialogues(self, write):
        return write(*DIALOGUES, name="dialogs.jsonl")

    @pytest.fixture
    def ratings(self, write):
        return write(*RATINGS, name="ratings.csv")

    def test_dialogues_their_ratings_and_scores_are_imported(self, dialogues, ratings):
        command_output("import_dstc9", dialogues, study="d", ratings=ratings)
        candidates = Candidate.objects.order_by("item__key")
        assert list(candidates.values_list("item__key", "system", "text")) == [
            ("0", "bot1", "User: hi\nSystem: hello"),
            ("1", "bot2", "User: hm\nSystem: what?"),
        ]
        # Each rater's slot is an annotator, and a missing rating is no judgment.
        assert sorted(judgments()) == [
            ("slot-0", "0", "bot1", "consistent", 1),
            ("slot-0", "0", "bot1", "overall", 4),
            ("slot-0", "1", "bot2", "overall", 2),
            ("slot-1", "0", "bot1", "overall", 5),
        ]
        questions = Study.objects.get().questions.values_list("name", flat=True)
        assert list(questions) == ["overall", "consistent"]
        assert scores("d") == {("flow_score", "0", "bot1"): 1.5, ("flow_score", "1", "bot2"): 1.25}
        assert not models.ScoringRun.objects.get().higher_is_better

    def test_dialogues_may_come_without_ratings_and_compressed(self, tmp_path):
        path = tmp_path / "dialogs.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(DIALOGUES).encode()))
        # Dialogues, and rows read and used.
        assert numbers_in(command_output("import_dstc9", path, study="d")) == [2, 2, 2]
        assert not Submission.objects.exists()

    def test_last_turns_have_the_mean_rating_and_the_turns_before(self, as_json):
        data = {
            "contexts": [["hi", "hello "], ["so?"]],
            "responses": ["bye", "hm"],
            "references": ["NO REF", "yes"],
            "scores": [4.5, None],
            "models": ["bot1", "bot2"],
        }
        command_output("import_dstc9", as_json(data), study="d")
        items = Study.objects.get().items.values_list("context", "reference")
        assert list(items) == [("hi\nhello", ""), ("so?", "yes")]
        assert judgments() == [("mean-of-raters", "0", "bot1", "overall", 4.5)]
        # They may name no system.
        data = {"contexts": [["hi"]], "responses": ["bye"], "scores": [3]}
        command_output("import_dstc9", as_json(data), study="e")
        candidates = Candidate.objects.filter(item__study__slug="e")
        assert candidates.values_list("key", "system").get() == ("response", "")

    def test_ratings_that_do_not_fit_are_refused(self, dialogues, write):
        for rows, code, line, field in (
            (["7,bot1,0,4,1,1"], "unknown_item", 2, "dialog_id"),
            (["0,bot2,0,4,1,1"], "other_system", 2, "chatbot"),
            (["0,bot1,0,good,1,1"], "not_number", 2, "overall"),
            (["0,bot1,0,4,1,1", "0,bot1,1,4,1,2"], "other_score", 3, "flow_score"),
            (["0,bot1,0,7,1,1"], "off_scale", 2, "overall"),
            (["0,bot1,0,4,1,1", "0,bot1,0,5,1,1"], "repeated_rating", 3, "rater_slot"),
            (["dialog_id,chatbot,rater_slot,beauty", "0,bot1,0,4"], "unknown_column", 1, None),
            (
                [f"dialog_id,chatbot,rater_slot,{LONG}_score", "0,bot1,0,4"],
                "too_long",
                2,
                f"{LONG}_score",
            ),
        ):
            header = [] if rows[0].startswith("dialog_id") else [RATINGS[0]]
            ratings = write(*header, *rows, name="ratings.csv")
            with refused(ImportRefused, code, path=ratings, line=line, field=field):
                command_output("import_dstc9", dialogues, study="d", ratings=ratings)
            assert not Study.objects.exists()

    def test_a_rating_that_has_changed_is_refused(self, dialogues, ratings, write):
        command_output("import_dstc9", dialogues, study="d", ratings=ratings)
        changed = write(RATINGS[0], "0,bot1,0,1,1,1.5", name="ratings.csv")
        with refused(ImportRefused, "other_submission", path=changed, line=2):
            command_output("import_dstc9", dialogues, study="d", ratings=changed)

    def test_lists_that_do_not_fit_are_refused_by_their_place(self, as_json):
        for data, code, field in (
            ({"contexts": [], "responses": [], "scores": []}, "empty", "responses"),
            (
                {"contexts": [["hi"]], "responses": ["bye", "hm"], "scores": [3, 4]},
                "other_length",
                "contexts",
            ),
            (
                {"contexts": [["hi"], 0], "responses": ["a", "b"], "scores": [3, "high"]},
                "not_number",
                "[1].scores",
            ),
        ):
            assert_refused("import_dstc9", as_json(data), code, line=1, field=field)

    @pytest.mark.shared_data
    def test_the_published_data_has_2200_dialogues_and_their_raters(self, shared_data):
        folder = shared_data / "dstc9"
        ratings = folder / "ratings.csv"
        command_output("import_dstc9", folder / "dialogs.jsonl.gz", study="d", ratings=ratings)
        assert Candidate.objects.count() == 2200
        assert Submission.objects.count() == 6473
        assert Judgment.objects.filter(question__name="overall").count() == 6473
        assert Judgment.objects.filter(question__name="consistent").count() == 6473 - 26
        assert models.ScoringRun.objects.counted().get().n_scores == 2200
        command_output("import_dstc9", folder / "dstc9_seed004_structure.json.gz", study="turns")
        assert Candidate.objects.filter(item__study__slug="turns").count() == 2200


WIDE = (
    "id,question,golden_answer,prompt,alpha,beta",
    "q1,Open on Sunday?,No.,standard,Yes!,No.",
    "q1,Open on Sunday?,No.,enhanced,No.,",
    "q2,Any fees?,None.,standard,Some.,No fees.",
)


class TestGoldenAnswers:
    def answers(self):
        rows = Candidate.objects.order_by("item__position", "position")
        of_item = ("item__key", "item__condition", "item__context", "item__reference")
        return list(rows.values_list(*of_item, "key", "text"))

    def test_a_question_under_one_prompt_is_an_item_in_both_forms(self, write):
        command_output("import_golden_answers", write(*WIDE), study="e2e")
        assert self.answers() == [
            ("q1/standard", "standard", "Open on Sunday?", "No.", "alpha", "Yes!"),
            ("q1/standard", "standard", "Open on Sunday?", "No.", "beta", "No."),
            ("q1/enhanced", "enhanced", "Open on Sunday?", "No.", "alpha", "No."),
            ("q1/enhanced", "enhanced", "Open on Sunday?", "No.", "beta", ""),
            ("q2/standard", "standard", "Any fees?", "None.", "alpha", "Some."),
            ("q2/standard", "standard", "Any fees?", "None.", "beta", "No fees."),
        ]
        # The long form says the same.
        wide = self.answers()
        Study.objects.all().delete()
        header, *rows = [line.split(",") for line in WIDE]
        long = [
            ",".join([*row[:4], system, text])
            for row in rows
            for system, text in zip(header[4:], row[4:], strict=True)
        ]
        path = write("id,question,golden_answer,prompt,system,answer", *long, name="long.csv")
        command_output("import_golden_answers", path, study="long")
        assert self.answers() == wide

    @pytest.mark.parametrize(
        ("lines", "names"),
        [
            (("question,golden_answer,alpha", "A?,a,b", "B?,b,c"), ["1", "2"]),
            (
                ("question,golden_answer,prompt,alpha", "A?,a,x,b", "B?,b,x,c", "A?,a,y,d"),
                ["1/x", "2/x", "1/y"],
            ),
        ],
    )
    def test_questions_without_names_are_numbered(self, write, lines, names):
        command_output("import_golden_answers", write(*lines), study="e2e")
        assert [item for item, *_ in self.answers()] == names

    @pytest.mark.parametrize(
        ("header", "rows", "code", "field"),
        [
            ("question,golden_answer", ["A?,a"], "no_system", None),
            ("question,golden_answer,s", [",a,b"], "empty", "question"),
            ("question,golden_answer,s", ["A?,a,b", "A?,a,c"], "repeated_response", None),
            (
                "question,golden_answer,system,answer",
                ["A?,a,s,b", "A?,other,t,c"],
                "differs",
                "golden_answer",
            ),
            ("id,question,golden_answer,s", ["1,A?,a,b", "2,A?,a,c"], "repeated_question", "id"),
            ("id,question,golden_answer,s", ["1,A?,a,b", "1,B?,a,c"], "differs", "question"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, write, header, rows, code, field):
        line = 1 if code == "no_system" else len(rows) + 1
        path = write(header, *rows)
        assert_refused("import_golden_answers", path, code, line=line, field=field)
