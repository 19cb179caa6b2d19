"""What a prediction leaves open, and the run that would decide it, in words."""

import pytest

from pipeprof.analyze.wording.prediction import deciding_run, explain_prediction, open_question


@pytest.mark.parametrize(
    ("figures", "sentence"),
    [
        ({}, ""),
        ({"num_workers": 4}, "a short run with num_workers=4"),
        (
            {"num_workers": 1, "prefetch_factor": 2},
            "a short run with num_workers=1 and prefetch_factor=2",
        ),
        ({"noise": 0.32}, "longer runs, since those with the same setting differ by 32 %"),
    ],
)
def test_the_deciding_run_is_named_by_its_setting(figures, sentence):
    assert deciding_run(figures) == sentence


def test_an_open_question_is_a_sentence_and_none_is_empty():
    assert open_question("hand-over").startswith("the training process does little but receive")
    assert open_question("shared-wait") == "what workers wait for may have no room for more of them"
    assert open_question("single-run").startswith("one run leaves open how much cores slow")
    assert open_question("") == ""


def test_a_proposal_gets_sentences_in_the_place_of_codes():
    words = explain_prediction({"wanted": 4, "left_open": "single-run", "settle": {"noise": 0.2}})
    assert words["wanted"] == 4
    assert words["left_open"] == open_question("single-run")
    assert words["settle"] == deciding_run({"noise": 0.2})
    assert explain_prediction({"left_open": None, "settle": None}) == {
        "left_open": None, "settle": None
    }  # fmt: skip
