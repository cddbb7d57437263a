import gzip
import json
import math

import pytest

from annotation.exceptions import ImportRefused
from annotation.frames import judgment_frame
from annotation.models import Candidate, Judgment, Study, Submission
from metrics.frames import score_frame
from metrics.models import ScoringRun
from tests.annotation.importing import assert_refused, command_output

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


@pytest.fixture
def as_json(tmp_path):
    """Write a value to a .json file, one entry a line."""

    def written(value, name="data.json"):
        path = tmp_path / name
        path.write_text(json.dumps(value, indent=0))
        return path

    return written


def judgments():
    rows = Judgment.objects.order_by("candidate__item__key", "candidate__key", "question__position")
    return list(
        rows.values_list(
            "submission__annotator__pseudonym",
            "candidate__item__key",
            "candidate__key",
            "question__name",
            "value",
        )
    )


def scores(study):
    return {
        (row.metric, row.item, row.candidate): None if math.isnan(row.value) else row.value
        for row in score_frame(Study.objects.get(slug=study)).itertuples()
    }


class TestTopicalChat:
    def test_responses_to_one_dialogue_are_the_candidates_of_an_item(self, as_json):
        path = as_json([response("a", "yes"), response("b", "no"), response("a", "so", dialogue=1)])
        output = command_output("import_topical_chat", path, study="tc")
        assert output.startswith("Study 'tc': 2 items and 2 submissions imported.")
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

    def test_the_raters_means_are_one_annotators_judgments(self, as_json):
        command_output("import_topical_chat", as_json([response("a", "yes")]), study="tc")
        assert judgments() == [
            ("mean-of-raters", "0", "a", "naturalness", 2.5),
            ("mean-of-raters", "0", "a", "overall", 4),
        ]
        scales = Study.objects.get().questions.values_list("name", "scale_min", "scale_max")
        assert ("groundedness", 0, 1) in list(scales)

    def test_a_response_without_a_fact_has_the_dialogue_for_its_context(self, as_json):
        command_output(
            "import_topical_chat", as_json([response("a", "x", context="_nofact\n")]), study="tc"
        )
        assert Study.objects.get().items.get().context == "hi\nhello 0"

    def test_dialogues_may_be_named(self, as_json):
        command_output(
            "import_topical_chat", as_json([response("a", "yes", dialog_id=17)]), study="tc"
        )
        assert Study.objects.get().items.get().key == "17"

    def test_other_objects_of_numbers_are_metrics_scores(self, as_json):
        path = as_json([response("a", "yes", unieval={"naturalness": 0.75, "coherence": None})])
        output = command_output("import_topical_chat", path, study="tc")
        assert "1 of unieval_naturalness, 1 of unieval_coherence scores imported." in output
        assert scores("tc") == {
            ("unieval_naturalness", "0", "a"): 0.75,
            ("unieval_coherence", "0", "a"): None,
        }

    def test_the_mean_of_gevals_samples_is_a_score_under_its_mode(self, as_json, write):
        path = as_json([response("a", "yes", item_id=3), response("b", "no", item_id=4)])
        sample = {"item_id": 3, "mode": "geval", "dim": "naturalness", "scores": [1, 2, 2, 3]}
        lines = [sample, sample | {"mode": "plain", "scores": []}]
        geval = write(*map(json.dumps, lines), name="geval.jsonl")
        command_output("import_topical_chat", path, study="tc", geval=geval)
        means = {run.signature: run.scores.get().value for run in ScoringRun.objects.all()}
        assert means == {
            "imported|mode:geval|weights:sampled|file:geval.jsonl": 2,
            "imported|mode:plain|weights:sampled|file:geval.jsonl": None,
        }

    def test_importing_again_changes_nothing(self, as_json):
        path = as_json([response("a", "yes", unieval={"naturalness": 0.75})])
        command_output("import_topical_chat", path, study="tc")
        before = (judgments(), scores("tc"))
        assert "1 more was there already" in command_output("import_topical_chat", path, study="tc")
        assert (judgments(), scores("tc")) == before

    @pytest.mark.parametrize(
        ("entries", "problem", "line", "field"),
        [
            ([response("a", "x", scores=3)], "expected an object of numbers", 2, "scores"),
            (
                [response("a", "x", naturalness="good")],
                "'good' is not a number",
                2,
                "scores.naturalness",
            ),
            (
                [response("a", "x", scores={"beauty": 1})],
                "'beauty' is none of coherence",
                2,
                "scores",
            ),
            (
                [response("a", "x"), response("a", "y")],
                "a response of 'a' already",
                12,
                "system_id",
            ),
            ([{"source": "x"}], "this field is missing", 2, "system_id"),
            (
                [response("a", "x", dialog_id=1), response("b", "x", dialog_id=1, source="other")],
                "differs from line 2 of the same dialogue",
                13,
                "source",
            ),
            (
                [response("a", "x", unieval={"m" * 57: 1})],
                "name has 65 characters, where 64 fit",
                2,
                f"unieval.{'m' * 57}",
            ),
            (
                [response("a", "x", scores={"overall": 6})],
                "6 is outside the scale of 'overall'",
                2,
                "scores.overall",
            ),
            ([7], "expected a JSON object", 2, None),
            ({"a": 1}, "expected a JSON array", 1, None),
            ([], "holds no rows", None, None),
        ],
    )
    def test_what_does_not_fit_is_refused_by_line_and_field(
        self, as_json, entries, problem, line, field
    ):
        path = as_json(entries)
        assert_refused("import_topical_chat", path, problem, line=line, field=field)

    @pytest.mark.parametrize(
        ("text", "problem", "line"),
        [
            ('[{"a": 1} {"b": 2}]', "expected a comma or a bracket", 1),
            ('[{"a": 1},', "this is not JSON", 2),
            ('[{"a": NaN}]', "NaN is not a JSON value", 1),
            ('[{"a": 1}', "expected a comma or a bracket", 1),
        ],
    )
    def test_a_file_that_is_no_json_is_refused(self, write, text, problem, line):
        path = write(text, name="data.json")
        assert_refused("import_topical_chat", path, problem, line=line)

    @pytest.fixture
    def published(self, shared_data):
        """The 360 responses, with UniEval's scores and G-Eval's samples."""
        folder = shared_data / "topical_chat_usr"
        samples = folder / "geval_gpt35_n20.jsonl"
        command_output(
            "import_topical_chat", folder / "topical_chat_usr.json", study="tc", geval=samples
        )
        return Study.objects.get()

    @pytest.mark.shared_data
    def test_the_published_data_has_360_responses_with_scores_of_six_questions(self, published):
        assert Candidate.objects.count() == 360
        assert Judgment.objects.count() == 360 * 6
        assert ScoringRun.objects.filter(metric__startswith="unieval_").count() == 6
        geval = ScoringRun.objects.filter(metric__startswith="geval_").counted()
        assert sum(run.n_scores for run in geval) == 10_000

    @pytest.mark.shared_data
    def test_imported_samples_agree_with_annotators_as_published(self, published):
        human = judgment_frame(published).astype({"item": str, "candidate": str, "question": str})
        scored = score_frame(published)
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

    def test_a_dialogue_is_an_item_and_what_was_said_its_candidate(self, dialogues, write):
        command_output(
            "import_dstc9", dialogues, study="d", ratings=write(*RATINGS, name="ratings.csv")
        )
        candidates = Candidate.objects.order_by("item__key").values_list(
            "item__key", "system", "text"
        )
        assert list(candidates) == [
            ("0", "bot1", "User: hi\nSystem: hello"),
            ("1", "bot2", "User: hm\nSystem: what?"),
        ]

    def test_each_rater_slot_is_an_annotator_and_a_missing_rating_no_judgment(
        self, dialogues, write
    ):
        command_output(
            "import_dstc9", dialogues, study="d", ratings=write(*RATINGS, name="ratings.csv")
        )
        assert sorted(judgments()) == [
            ("slot-0", "0", "bot1", "consistent", 1),
            ("slot-0", "0", "bot1", "overall", 4),
            ("slot-0", "1", "bot2", "overall", 2),
            ("slot-1", "0", "bot1", "overall", 5),
        ]
        assert list(Study.objects.get().questions.values_list("name", flat=True)) == [
            "overall",
            "consistent",
        ]

    def test_scores_beside_the_ratings_are_a_metrics(self, dialogues, write):
        command_output(
            "import_dstc9", dialogues, study="d", ratings=write(*RATINGS, name="ratings.csv")
        )
        assert scores("d") == {("flow_score", "0", "bot1"): 1.5, ("flow_score", "1", "bot2"): 1.25}
        assert not ScoringRun.objects.get().higher_is_better

    def test_dialogues_may_come_without_ratings_and_compressed(self, tmp_path):
        path = tmp_path / "dialogs.jsonl.gz"
        path.write_bytes(gzip.compress("\n".join(DIALOGUES).encode()))
        assert "2 items imported" in command_output("import_dstc9", path, study="d")
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

    def test_last_turns_may_name_no_system(self, as_json):
        data = {"contexts": [["hi"]], "responses": ["bye"], "scores": [3]}
        command_output("import_dstc9", as_json(data), study="d")
        assert Candidate.objects.values_list("key", "system").get() == ("response", "")

    def assert_ratings_refused(self, dialogues, ratings, problem, line, field):
        with pytest.raises(ImportRefused, match=problem) as caught:
            command_output("import_dstc9", dialogues, study="d", ratings=ratings)
        assert (caught.value.line, caught.value.field) == (line, field)
        assert "ratings.csv" in str(caught.value)
        assert not Study.objects.exists()

    @pytest.mark.parametrize(
        ("rows", "problem", "line", "field"),
        [
            (["7,bot1,0,4,1,1"], "there is no such dialogue", 2, "dialog_id"),
            (["0,bot2,0,4,1,1"], "the dialogue was with 'bot1'", 2, "chatbot"),
            (["0,bot1,0,good,1,1"], "'good' is not a number", 2, "overall"),
            (["0,bot1,0,4,1,1", "0,bot1,1,4,1,2"], "another score", 3, "flow_score"),
            (["0,bot1,0,7,1,1"], "7 is outside the scale of 'overall'", 2, "overall"),
            (["0,bot1,0,4,1,1", "0,bot1,0,5,1,1"], "line 2 has a rating", 3, "rater_slot"),
        ],
    )
    def test_ratings_that_do_not_fit_are_refused(
        self, dialogues, write, rows, problem, line, field
    ):
        ratings = write(RATINGS[0], *rows, name="ratings.csv")
        self.assert_ratings_refused(dialogues, ratings, problem, line, field)

    def test_an_unknown_column_of_ratings_is_refused(self, dialogues, write):
        ratings = write("dialog_id,chatbot,rater_slot,beauty", "0,bot1,0,4", name="ratings.csv")
        self.assert_ratings_refused(dialogues, ratings, "'beauty' is neither a question", 1, None)

    def test_a_rating_that_has_changed_is_refused(self, dialogues, write):
        command_output(
            "import_dstc9", dialogues, study="d", ratings=write(*RATINGS, name="ratings.csv")
        )
        changed = write(RATINGS[0], "0,bot1,0,1,1,1.5", name="ratings.csv")
        with pytest.raises(ImportRefused, match=r"Line 2 of ratings.csv: .* another submission"):
            command_output("import_dstc9", dialogues, study="d", ratings=changed)

    def test_a_metrics_name_is_not_cut(self, dialogues, write):
        name = f"{'m' * 59}_score"
        ratings = write(f"dialog_id,chatbot,rater_slot,{name}", "0,bot1,0,4", name="ratings.csv")
        self.assert_ratings_refused(dialogues, ratings, "65 characters, where 64 fit", 2, name)

    def test_lists_of_nothing_are_refused(self, as_json):
        path = as_json({"contexts": [], "responses": [], "scores": []})
        assert_refused("import_dstc9", path, "it holds none", line=1, field="responses")

    def test_lists_of_different_lengths_are_refused(self, as_json):
        path = as_json({"contexts": [["hi"]], "responses": ["bye", "hm"], "scores": [3, 4]})
        problem = "1 entries, where responses have 2"
        assert_refused("import_dstc9", path, problem, line=1, field="contexts")

    def test_an_entry_that_does_not_fit_is_refused_by_its_place(self, as_json):
        path = as_json({"contexts": [["hi"], 0], "responses": ["a", "b"], "scores": [3, "high"]})
        assert_refused("import_dstc9", path, "is not a number", line=1, field="[1].scores")

    @pytest.mark.shared_data
    def test_the_published_data_has_2200_dialogues_and_their_raters(self, shared_data):
        folder = shared_data / "dstc9"
        command_output(
            "import_dstc9",
            folder / "dialogs.jsonl.gz",
            study="d",
            ratings=folder / "ratings.csv",
        )
        assert Candidate.objects.count() == 2200
        assert Submission.objects.count() == 6473
        assert Judgment.objects.filter(question__name="overall").count() == 6473
        assert Judgment.objects.filter(question__name="consistent").count() == 6473 - 26
        assert ScoringRun.objects.counted().get().n_scores == 2200
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
        return list(
            rows.values_list(
                "item__key", "item__condition", "item__context", "item__reference", "key", "text"
            )
        )

    def test_a_question_under_one_prompt_is_an_item(self, write):
        command_output("import_golden_answers", write(*WIDE), study="e2e")
        assert self.answers() == [
            ("q1/standard", "standard", "Open on Sunday?", "No.", "alpha", "Yes!"),
            ("q1/standard", "standard", "Open on Sunday?", "No.", "beta", "No."),
            ("q1/enhanced", "enhanced", "Open on Sunday?", "No.", "alpha", "No."),
            ("q1/enhanced", "enhanced", "Open on Sunday?", "No.", "beta", ""),
            ("q2/standard", "standard", "Any fees?", "None.", "alpha", "Some."),
            ("q2/standard", "standard", "Any fees?", "None.", "beta", "No fees."),
        ]

    def test_the_long_form_says_the_same(self, write):
        command_output("import_golden_answers", write(*WIDE), study="wide")
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

    def test_questions_without_names_are_numbered_and_prompts_may_be_left_out(self, write):
        path = write("question,golden_answer,alpha", "A?,a,b", "B?,b,c")
        command_output("import_golden_answers", path, study="e2e")
        assert [(item, prompt) for item, prompt, *_ in self.answers()] == [("1", ""), ("2", "")]

    def test_the_same_question_under_two_prompts_has_one_number(self, write):
        path = write("question,golden_answer,prompt,alpha", "A?,a,x,b", "B?,b,x,c", "A?,a,y,d")
        command_output("import_golden_answers", path, study="e2e")
        assert [item for item, *_ in self.answers()] == ["1/x", "2/x", "1/y"]

    @pytest.mark.parametrize(
        ("lines", "problem", "line", "field"),
        [
            (["question,golden_answer", "A?,a"], "no column for any system", 1, None),
            (["question,golden_answer,s", ",a,b"], "must not be empty", 2, "question"),
            (["question,golden_answer,s", "A?,a,b", "A?,a,c"], "answer of 's' already", 3, None),
            (
                ["question,golden_answer,system,answer", "A?,a,s,b", "A?,other,t,c"],
                "differs from line 2",
                3,
                "golden_answer",
            ),
            (
                ["id,question,golden_answer,s", "1,A?,a,b", "2,A?,a,c"],
                "named '1' already",
                3,
                "id",
            ),
            (
                ["id,question,golden_answer,s", "1,A?,a,b", "1,B?,a,c"],
                "differs from line 2",
                3,
                "question",
            ),
        ],
    )
    def test_what_does_not_fit_is_refused_by_line_and_field(
        self, write, lines, problem, line, field
    ):
        path = write(*lines)
        assert_refused("import_golden_answers", path, problem, line=line, field=field)
