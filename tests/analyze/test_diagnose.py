"""The verdict in words."""

import pytest

from pipeprof.analyze.assemble import assemble
from tests.analyze.pipelines import workers_run
from tests.analyze.runs import seen, transferred


@pytest.mark.parametrize(
    ("recording", "cause"),
    [
        (seen(workers_run(cpu_share=0.1), runqueue_s=0.0),
         "fetch (building a batch is 90 % blocked)"),
        (seen(workers_run(cpu_share=0.9), runqueue_s=0.0),
         "fetch (building a batch is 90 % computing)"),
        (seen(workers_run(cpu_share=0.3), runqueue_s=0.018),
         "for a core (worker-cpu) (building a batch is 60 % waiting for a core)"),
        (seen(workers_run(cpu_share=0.1), runqueue_s=0.0, process_cpu_s=0.030),
         "fetch (building a batch is 90 % waiting for native threads)"),
        (transferred(tensors=200, batch_bytes=1600), "transfer (of 200 tensors a batch)"),
        (workers_run(), "fetch"),
    ],
)  # fmt: skip
def test_the_headline_names_what_lies_behind(recording, cause):
    assert assemble(recording).diagnosis.headline.endswith(f"of that wait was {cause}.")
