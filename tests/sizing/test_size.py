"""Sizing as a whole: what follows from what, what is asked for, and what is refused."""

from dataclasses import replace

import orjson
import pytest
from click.testing import CliRunner

from pipeprof.cli.app import app
from pipeprof.errors import UsageError
from pipeprof.sizing.formulas import FORMULAS
from pipeprof.sizing.inputs import BY_NAME
from pipeprof.sizing.mlperf import WORKLOADS
from pipeprof.sizing.size import size
from pipeprof.sizing.sources import from_accelerator, from_profile, from_workload
from tests.samples import sample_profile

SECTION = "Storage, for all accelerators"


def given(**values: float):
    return {name: BY_NAME[name].checked(value, "given") for name, value in values.items()}


def figures(sizing):
    return {each.name: each.value for section in sizing.sections.values() for each in section}


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["size", *arguments])
    assert done.exit_code != 0
    return str(done.exception) if isinstance(done.exception, UsageError) else done.output


# -- what is known -------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each.name)
def test_mlperfs_own_bandwidth_is_found_for_each_of_its_workloads(workload):
    """accelerators × batch × bytes really read / computation time × AU."""
    read = workload.read_bytes_per_sample or workload.record_bytes
    rate = 16 * workload.batch_size * read / workload.computation_time_s * workload.au_bar
    found = figures(size(from_workload(workload.name, None), 16))
    assert found["read_bandwidth"] == pytest.approx(rate, rel=1e-3)


def test_unet3d_on_eight_h100_wants_23_gigabytes_a_second():
    sizing = size(from_workload("unet3d", "h100"), 8)
    assert figures(sizing)["read_bandwidth"] == pytest.approx(22.87e9, rel=1e-3)


def test_a_cache_on_each_node_takes_reads_off_the_storage():
    inputs = from_workload("retinanet", "b200") | given(gpus_per_node=8, dataset_bytes=10e12)
    without = figures(size(inputs, 64))
    found = figures(size(inputs | given(cache_hit_share=0.4), 64))
    assert found["physical_bandwidth"] == pytest.approx(0.6 * without["physical_bandwidth"])
    assert found["local_cache_bandwidth"] == pytest.approx(0.4 * without["node_read_bandwidth"])
    assert found["local_cache_per_node"] == pytest.approx(0.4 * 10e12 / 0.8)
    assert "local_cache_per_node" not in without


def test_storage_feeds_more_accelerators_where_caches_serve_a_part():
    inputs = from_workload("retinanet", "b200") | given(storage_bandwidth=40e9, gpus_per_node=8)
    without = figures(size(inputs, 64))
    found = figures(size(inputs | given(cache_hit_share=0.75), 64))
    for name in ("gpus_fed", "nodes_fed"):
        assert found[name] == pytest.approx(4 * without[name])
    all_cached = figures(size(inputs | given(cache_hit_share=1.0), 64))
    assert {"gpus_fed", "nodes_fed"}.isdisjoint(all_cached), "no storage limits them"


def test_a_profile_says_what_a_sample_takes():
    profile = sample_profile()
    found = from_profile(profile, "run.json")
    samples = profile.throughput.samples_per_s / profile.throughput.batches_per_s
    assert found["batch_size"].value == samples
    assert found["step_s"].value == profile.stages["step"].mean_s
    assert found["starved_fraction"].value == profile.diagnosis.starved_fraction
    assert found["dataset_bytes"].value == profile.source.bytes
    assert {each.origin for each in found.values()} == {"profile run.json"}


def test_a_profiles_requests_say_how_many_must_be_under_way():
    """A line through size and time says what a larger request would take; the mean says it of such
    requests only."""
    requests = sample_profile().requests
    found = from_profile(sample_profile(), "run.json")
    assert found["request_bytes"].value == requests.size.mean
    assert found["first_byte_s"].value == requests.fit.latency_intercept_s
    assert found["stream_bandwidth"].value == requests.fit.bandwidth
    assert "request_s" not in found

    alike = replace(requests, fit=None, fit_missing="all requests are of about one size")
    found = from_profile(sample_profile(requests=alike), "run.json")
    assert found["request_s"].value == requests.latency_s.mean
    sizing = figures(size(found, 8))
    assert sizing["requests_in_flight"] == pytest.approx(
        sizing["requests_per_s"] * requests.latency_s.mean, abs=1
    )


def test_a_data_set_of_so_many_samples_is_not_the_one_of_the_profile(tmp_path):
    sample_profile().save(tmp_path / "run.json")
    arguments = ["--gpus", "8", "--dataset-samples", "1e9", "--record-bytes", "100kB", "--json"]
    done = CliRunner().invoke(app, ["size", "--profile", str(tmp_path / "run.json"), *arguments])
    (sizing,) = orjson.loads(done.output)
    told = {each["name"]: each["value"] for each in sizing["sections"][SECTION]}
    assert told["dataset_bytes"] == pytest.approx(1e14)


def test_what_is_written_of_requests_counts_more_than_those_of_a_profile(tmp_path):
    requests = replace(sample_profile().requests, fit=None, fit_missing="only 3 requests came")
    sample_profile(requests=requests).save(tmp_path / "run.json")
    arguments = ["size", "--profile", str(tmp_path / "run.json"), "--gpus", "8", "--json"]
    written = ["--first-byte-ms", "20", "--stream-bandwidth", "100MB", "--request-bytes", "1MB"]
    done = CliRunner().invoke(app, arguments + written)
    (sizing,) = orjson.loads(done.output)
    told = {each["name"]: each["value"] for each in sizing["sections"][SECTION]}
    assert told["request_s"] == pytest.approx(0.03)
    sample_profile().save(tmp_path / "run.json")
    done = CliRunner().invoke(app, [*arguments, "--request-ms", "50"])
    (sizing,) = orjson.loads(done.output)
    told = {each["name"]: each["value"] for each in sizing["sections"][SECTION]}
    assert told["request_s"] == 0.05


def test_reads_that_nobody_clocked_are_those_of_read_calls():
    profile = sample_profile(requests=None)
    unseen = replace(profile.throughput, bytes_per_s=0.0)
    counted = replace(profile.batches, logical_bytes=(3e6, None), syscalls=(30.0, None))
    found = from_profile(replace(profile, throughput=unseen, batches=counted), "run.json")
    assert found["bytes_per_sample"].value == 3e6 / found["batch_size"].value
    assert found["request_bytes"].value == 1e5
    assert found["request_bytes"].origin == "profile run.json, by read calls"

    found = from_profile(replace(profile, batches=counted), "run.json")
    assert found["bytes_per_sample"].origin == "profile run.json", "clocked ones count more"
    assert found["request_bytes"].value == 1e5

    talk = replace(profile.batches, logical_bytes=(300.0, None), syscalls=(3.0, None))
    found = from_profile(replace(profile, throughput=unseen, batches=talk), "run.json")
    assert "bytes_per_sample" not in found, "what worker and main tell one another"


def test_an_accelerator_sold_in_two_sizes_does_not_say_its_memory():
    assert set(from_accelerator("a100")) == {"peak_flop_per_s"}
    assert from_accelerator("h100")["accelerator_memory"].value == 80e9
    assert from_accelerator("mi355") == {}


def test_what_is_given_counts_more_than_its_formula():
    sizing = size(given(samples_per_s=100, bytes_per_sample=1e6), 4)
    rate = sizing.sections["Storage, for all accelerators"][0]
    assert rate.name == "samples_per_s"
    assert (rate.value, rate.formula, rate.source) == (100, "given", "given")


def test_what_is_not_known_is_asked_for_by_name_and_not_guessed():
    sizing = size(given(samples_per_s=100, bytes_per_sample=1e6), 4)
    assert sizing.lacking["requests_per_s"] == ("request_bytes",)
    assert sizing.lacking["node_read_bandwidth"] == ("gpus_per_node",)
    assert set(figures(sizing)) | set(sizing.lacking) == set(FORMULAS)
    assert not set(figures(sizing)) & set(sizing.lacking)


def test_an_answer_to_what_was_asked_gives_the_figure():
    sizing = size(given(samples_per_s=100, bytes_per_sample=1e6, request_bytes=1e6), 4)
    assert figures(sizing)["requests_per_s"] == pytest.approx(4 * 100 * 0.9)


# -- what if -------------------------------------------------------------------------------------


def test_what_if_changes_one_number_and_all_that_follows():
    known = given(samples_per_s=100, bytes_per_sample=1e6, storage_bandwidth=9e9)
    assert figures(size(known, 4))["gpus_fed"] == pytest.approx(100)
    assert figures(size(known, 4, "bandwidth=2x"))["gpus_fed"] == pytest.approx(200)
    assert figures(size(known, 4, "bytes-per-sample=0.5x"))["gpus_fed"] == pytest.approx(200)
    assert figures(size(known, 4, "target-au=0.45"))["gpus_fed"] == pytest.approx(200)


@pytest.mark.parametrize(
    ("what_if", "said"),
    [
        ("bandwidth=2x", "which of read-bandwidth, physical-bandwidth, advertised-bandwidth?"),
        ("bandwith=2x", "no such number is known"),
        ("target-au=fast", "is not a change; write it like bandwidth=2x"),
        ("target-au=-2x", "is not a change"),
    ],
)
def test_a_change_that_cannot_be_is_refused(what_if, said):
    with pytest.raises(UsageError, match=said):
        size(given(samples_per_s=100, bytes_per_sample=1e6), 4, what_if)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--gpus 0 --workload unet3d/h100", "0 is too small; the least is 1"),
        ("--gpus 8", "give a --profile, a --workload, or figures"),
        (
            "--gpus 8 --workload unet",
            "'unet' is not a known workload/accelerator; known are",
        ),
        (
            "--gpus 8 --workload unet3d",
            "unet3d needs an --accelerator: b200, a100, h100",
        ),
        ("--gpus 8 --accelerator h1000", "known are a100, b200, h100, h200, mi355, v100"),
        ("--gpus 8 --samples-per-s 9 --target-au 120%", "--target-au is 1.2; it can be 0 to 1"),
        ("--gpus 8 --samples-per-s -3", "--samples-per-s is -3; it can be 0 and more"),
        ("--gpus 8 --samples-per-s 0", "--samples-per-s is 0; it must be more"),
        ("--gpus 8 --samples-per-s nan", "--samples-per-s is nan"),
        ("--gpus 8 --bytes-per-sample big", "'big' is not a number; write it like 8MiB"),
        ("--gpus 8 --workload unet3d/h100 --samples-per-s 3 --step-ms 9", "leave one of them out"),
        ("--gpus 8 --tensor-bytes 2GB --node-ram 1GB", "no sample would fit"),
        ("--gpus 8 --profile no.json --workload dlrm/b200", "exclude each other; give one"),
    ],
)
def test_impossible_figures_are_refused_by_name(arguments, said):
    assert said in " ".join(refused(*arguments.split()).split())


def test_a_profile_of_nothing_is_refused():
    empty = replace(sample_profile(), measured_batches=0)
    with pytest.raises(UsageError, match="measured no batch; profile a longer run"):
        from_profile(empty, "run.json")
