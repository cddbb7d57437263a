"""Questions to begin with: the four aspects of Topical-Chat, and whole dialogues.

The scales are those annotators rated on (Mehri and Eskenazi, 2020); wording and steps are ours.
"""

from collections.abc import Mapping

from metrics.scorers.judges.geval_settings import GEvalSettings

PRESETS: Mapping[str, GEvalSettings] = {
    "coherence": GEvalSettings(
        aspect="Coherence",
        criteria="Does the response follow from the conversation? 1: it changes the topic or "
        "ignores what was said. 2: it takes up the conversation loosely. 3: it answers and "
        "continues what was said.",
        low=1,
        high=3,
        steps="1. Read the conversation and note what its last turn asks or says.\n"
        "2. Read the response and see what it takes up of that.\n"
        "3. Choose the level that fits.",
    ),
    "naturalness": GEvalSettings(
        aspect="Naturalness",
        criteria="Could a person have said this? 1: no. 2: somewhat. 3: yes.",
        low=1,
        high=3,
        steps="1. Read the response as if spoken.\n"
        "2. Look for phrases that no fluent speaker would use.\n"
        "3. Choose the level that fits.",
    ),
    "engagingness": GEvalSettings(
        aspect="Engagingness",
        criteria="Is the response interesting? 1: dull or generic. 2: somewhat interesting. "
        "3: it presents something of interest.",
        low=1,
        high=3,
        steps="1. Read the conversation and the response.\n"
        "2. See whether the response brings an opinion, a fact or a question worth an answer.\n"
        "3. Choose the level that fits.",
    ),
    "groundedness": GEvalSettings(
        aspect="Groundedness",
        criteria="Does the response use the fact that goes with the conversation? 0: it does "
        "not mention it. 1: it uses it well.",
        low=0,
        high=1,
        steps="1. Read the conversation and find the fact given with it.\n"
        "2. See whether the response rests on that fact.\n"
        "3. Choose 0 or 1.",
    ),
    "dialogue": GEvalSettings(
        aspect="Overall quality",
        criteria="How good is the conversation as a whole? 1: very bad. 5: very good.",
        low=1,
        high=5,
        unit="dialogue",
        steps="1. Read the whole conversation.\n"
        "2. Consider whether its turns fit together, are informative and pleasant.\n"
        "3. Choose the level that fits.",
    ),
}
