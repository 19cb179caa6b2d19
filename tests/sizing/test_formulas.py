"""Every formula of sizing, with a value worked out by hand."""

import pytest

from pipeprof.sizing.formulas import FORMULAS
from pipeprof.sizing.inputs import BY_NAME

BY_HAND = {
    # 400 / 0.2 = 2,000
    "samples_per_s": ({"batch_size": 400, "step_s": 0.2}, 2000),
    # 8 × 100 × 1 MB × 0.9
    "read_bandwidth": (
        {"gpus": 8, "samples_per_s": 100, "bytes_per_sample": 1e6, "target_au": 0.9}, 720e6,
    ),
    # one SuperPOD unit: 256 H100 at 40 GB/s are 0.156 GB/s each
    "read_bandwidth_per_gpu": ({"read_bandwidth": 40e9, "gpus": 256}, 0.15625e9),
    "physical_bandwidth": ({"read_bandwidth": 10e9, "physical_share": 0.25}, 2.5e9),
    "advertised_bandwidth": ({"physical_bandwidth": 8e9, "usable_share": 0.8}, 10e9),
    "requests_per_s": ({"read_bandwidth": 8e9, "request_bytes": 8e6}, 1000),
    # 30 ms, and 8.5 MB at 85 MB/s: 130 ms
    "request_s": ({"first_byte_s": 0.03, "request_bytes": 8.5e6, "stream_bandwidth": 85e6}, 0.13),
    # 10 Gb/s from S3 at 85 MB/s a request: 1,250 / 85 = 14.7, so 15 connections
    "requests_in_flight": ({"requests_per_s": 1250 / 8, "request_s": 8 / 85}, 15),
    # 12,000 / 5,500 = 2.2
    "s3_prefixes": ({"requests_per_s": 12_000, "s3_requests_per_prefix": 5500}, 3),
    "dataset_bytes": ({"dataset_samples": 1e6, "record_bytes": 1.5e5}, 1.5e11),
    "dataset_capacity": ({"dataset_bytes": 80e12, "usable_capacity": 0.8}, 100e12),
    "staging_s": ({"dataset_bytes": 10e12, "storage_bandwidth": 5e9}, 2000),
    # 1 M samples at 8 × 100 × 0.5 = 400/s
    "epoch_s": ({"dataset_samples": 1e6, "gpus": 8, "samples_per_s": 100, "target_au": 0.5}, 2500),
    # 9 GB/s, each accelerator 100 × 1 MB × 0.9 = 90 MB/s, of which half comes from caches
    "gpus_fed": (
        {"storage_bandwidth": 9e9, "samples_per_s": 100, "bytes_per_sample": 1e6,
         "target_au": 0.9, "physical_share": 0.5}, 200,
    ),
    # 4 GB/s: 1 write, 3 copies of a read and a write each, 1 read
    "host_memory_traffic": ({"node_read_bandwidth": 4e9}, 32e9),
    "nodes_fed": ({"gpus_fed": 100, "gpus_per_node": 8}, 12.5),
    # 900 MB/s, each accelerator 90 MB/s
    "gpus_fed_per_node": (
        {"client_bandwidth": 9e8, "samples_per_s": 100, "bytes_per_sample": 1e6,
         "target_au": 0.9, "physical_share": 1.0}, 10,
    ),
    "nodes": ({"gpus": 17, "gpus_per_node": 8}, 3),
    # 1,000/s × 0.9 × 5 ms = 4.5 busy
    "workers_per_gpu": ({"samples_per_s": 1000, "target_au": 0.9, "worker_s_per_sample": 0.005}, 5),
    "workers_per_node": ({"workers_per_gpu": 5, "gpus_per_node": 8}, 40),
    # 8 × (1,000 × 0.9 × 2 ms + 1) = 8 × 2.8 = 22.4
    "cores_per_node": (
        {"gpus_per_node": 8, "samples_per_s": 1000, "target_au": 0.9,
         "cpu_s_per_sample": 0.002}, 23,
    ),
    # 40 × 2 × 256 × 600 kB
    "prefetched_bytes_per_node": (
        {"workers_per_node": 40, "prefetch_factor": 2, "batch_size": 256,
         "tensor_bytes": 6e5}, 12.288e9,
    ),
    # 40 × 0.5 GB + 2 × 12 GB + 100 GB
    "ram_of_loading": (
        {"workers_per_node": 40, "worker_private_bytes": 0.5e9, "prefetched_bytes_per_node": 12e9,
             "page_cache_bytes": 100e9}, 144e9,
    ),
    # 2 accelerators of 40 GB want over 80 GB of host RAM
    "least_ram_per_node": ({"gpus_per_node": 2, "accelerator_memory": 40e9}, 80e9),
    "ram_left": ({"node_ram": 512e9, "ram_of_loading": 144e9}, 368e9),
    "node_read_bandwidth": ({"read_bandwidth": 40e9, "nodes": 32}, 1.25e9),
    "local_cache_bandwidth": ({"node_read_bandwidth": 1.25e9, "cache_hit_share": 0.4}, 5e8),
    "local_cache_per_node": (
        {"dataset_bytes": 10e12, "cache_hit_share": 0.4, "usable_capacity": 0.8}, 5e12,
    ),
    # 2 × 3/4 × 7 B × 2 bytes in 1 s
    "all_reduce_bandwidth": (
        {"nodes": 4, "parameters": 7e9, "gradient_bytes": 2, "step_s": 1}, 21e9),
    "node_network": (
        {"node_read_bandwidth": 3e9, "all_reduce_bandwidth": 21e9, "usable_share": 0.8}, 30e9,
    ),
    # 70 B × 14 bytes
    "checkpoint_bytes": ({"parameters": 70e9, "checkpoint_bytes_per_parameter": 14}, 980e9),
    "checkpoint_bandwidth": ({"checkpoint_bytes": 980e9, "checkpoint_s": 49}, 20e9),
    "system_mtbf_s": ({"device_mtbf_s": 3600 * 50_000, "gpus": 1000}, 3600 * 50),
    # √(2 × 50 × 10,000) = 1,000
    "checkpoint_interval_s": ({"checkpoint_s": 50, "system_mtbf_s": 10_000}, 1000),
    # 50 / 1,000 + 1,000 / 20,000
    "time_lost_to_failures": (
        {"checkpoint_s": 50, "checkpoint_interval_s": 1000, "system_mtbf_s": 10_000}, 0.1,
    ),
    "bandwidth_left_meanwhile": ({"storage_bandwidth": 50e9, "checkpoint_bandwidth": 20e9}, 30e9),
    # 80 B parameters on 80 GB: 80 · 18 · 1.25 / 80 = 22.5 to train, 2.5 to serve
    "gpus_to_train": ({"parameters": 80e9, "accelerator_memory": 80e9}, 23),
    "gpus_to_serve": ({"parameters": 80e9, "accelerator_memory": 80e9}, 3),
    # 624 TFLOP a step in 4 s on 312 peak: with 1 sample a step, 0.25 samples/s
    "mfu_if_fed": (
        {"flop_per_sample": 624e12, "samples_per_s": 0.25, "peak_flop_per_s": 312e12}, 0.5,
    ),
    "mfu": ({"mfu_if_fed": 0.5, "starved_fraction": 0.2}, 0.4),
    # 1e21 / (100 × 1e15 × 0.4) = 25,000 s
    "training_s": (
        {"training_flop": 1e21, "gpus": 100, "peak_flop_per_s": 1e15, "mfu": 0.4}, 25_000),
    "training_cost": ({"training_s": 36_000, "gpus": 100, "price_per_gpu_hour": 2.5}, 2500),
    "waiting_cost_per_hour": (
        {"gpus": 64, "price_per_gpu_hour": 2.5, "starved_fraction": 0.25}, 40,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_gives_what_was_worked_out_by_hand(name):
    numbers, expected = BY_HAND[name]
    assert FORMULAS[name](**numbers) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_needs_what_is_given_or_follows_and_names_its_source(name):
    formula = FORMULAS[name]
    assert set(formula.needs) <= {*BY_NAME, *FORMULAS, "gpus"}
    assert set(formula.needs) == set(BY_HAND[name][0])
    assert formula.unit in ("B", "B/s", "s", "1/s", "", "share", "FLOP", "FLOP/s", "$")
    assert formula.source.endswith(".")


def test_what_a_checkpoint_takes_is_never_less_than_nothing():
    left = FORMULAS["bandwidth_left_meanwhile"]
    assert left(storage_bandwidth=1e9, checkpoint_bandwidth=2e9) == 0


def test_whole_things_are_rounded_up_but_not_by_what_arithmetic_adds():
    prefixes = FORMULAS["s3_prefixes"]
    assert prefixes(requests_per_s=3 * (0.1 + 0.2), s3_requests_per_prefix=0.3) == 3
    assert prefixes(requests_per_s=1e-12, s3_requests_per_prefix=1.0) == 1
