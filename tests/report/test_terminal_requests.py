"""How the report words storage requests: three lines, with errors only if there were any."""

from dataclasses import replace

from tests.report.full import full_text
from tests.request_samples import sample_requests
from tests.samples import sample_profile


def block(**changes: object) -> str:
    text = full_text(sample_profile(requests=sample_requests(**changes)))
    start = text.index("Storage requests")
    return text[start : text.index("\n\n", start)]


def test_sizes_times_and_requests_in_flight():
    text = block()
    assert "84 in the whole run, 2.75 requests/s" in text
    assert "size                4.09 MB" in text
    assert "time to first byte  12.1 ms" in text
    assert "time to last byte   37.1 ms" in text
    assert "0.1 requests in flight on average" in text
    assert "Client CPU: 3.10 ms a request, 16 % of a core" in text
    assert "Fitted time: 11.8 ms + size / 163 MB/s (R² 0.87)" in text
    assert text.endswith("3 retries, 2 throttled responses")


def test_what_did_not_happen_or_is_unknown_is_left_out():
    quiet = block(
        retries=0, throttled=0, first_byte_s=None, fit=None, fit_missing="all alike",
        client_cpu_s=None, client_share=None,
    )  # fmt: skip
    for word in ("retries", "throttled", "failed", "first byte", "Fitted", "CPU", "None"):
        assert word not in quiet
    assert "Unknown: the data set" in full_text(sample_profile(requests=None))


def test_a_store_that_never_answered_shows_failed_requests():
    text = block(count=0, bytes=0, errors=3, retries=1, throttled=0)
    heading, *lines = text.splitlines()
    assert "0 in the whole run" in heading
    assert lines == ["  1 retry, 3 failed requests"]


def test_the_evidence_is_shown_with_the_verdict():
    diagnosis = replace(
        sample_profile().diagnosis, bottleneck="storage-latency", evidence="answers come late"
    )
    text = full_text(sample_profile(diagnosis=diagnosis))
    assert "storage     answers come late" in text
    red = full_text(sample_profile(diagnosis=diagnosis), color=True)
    assert [line for line in red.splitlines() if "31m" in line and "read" in line]
