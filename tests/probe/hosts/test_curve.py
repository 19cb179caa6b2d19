"""The limits of a host and of the storage, from the rates of 1, 2, 4, … hosts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeprof.probe.hosts.curve import fit_curve


def rates(hosts, per_host, total):
    return [(each, min(each * per_host, total)) for each in hosts]


def test_both_limits_and_the_knee():
    curve = fit_curve(rates([1, 2, 4, 8, 16], 100.0, 500.0))
    assert curve.per_host.value == pytest.approx(100)
    assert curve.total.value == pytest.approx(500)
    assert curve.knee == pytest.approx(5)
    assert [curve.rate(hosts) for hosts in (2, 5, 9)] == pytest.approx([200, 500, 500])


def test_hosts_that_do_not_reach_the_storages_limit_show_none():
    curve = fit_curve(rates([1, 2, 4, 8], 100.0, 1e9))
    assert curve.total is None
    assert curve.knee is None
    assert curve.rate(8) == pytest.approx(800)


def test_one_host_that_gets_all():
    assert fit_curve(rates([1, 2, 4], 100.0, 100.0)).knee == pytest.approx(1)


def test_rates_that_fall_behind_the_knee_are_no_growth():
    curve = fit_curve([(1, 100.0), (2, 200.0), (4, 210.0), (8, 190.0)])
    assert curve.total.value == pytest.approx(200, rel=0.03)


def test_a_single_load_has_an_interval_of_no_width_to_rely_on():
    curve = fit_curve([(1, 100.0)])
    assert (curve.per_host.value, curve.total) == (pytest.approx(100), None)


@given(
    st.floats(1.0, 1e9), st.floats(1.3, 20.0), st.integers(5, 8), st.randoms(use_true_random=False)
)
def test_limits_are_recovered_from_loads_that_vary(per_host, knee, sizes, random):
    hosts = [1 << power for power in range(sizes)] * 2
    points = [(n, rate * random.uniform(0.98, 1.02))
              for n, rate in rates(hosts, per_host, knee * per_host)]  # fmt: skip
    curve = fit_curve(points)
    assert curve.per_host.value == pytest.approx(per_host, rel=0.03)
    if knee < 0.8 * hosts[-1]:
        assert curve.total.value == pytest.approx(knee * per_host, rel=0.03)


def test_an_interval_holds_the_same_probe_made_again():
    """Of 300 probes of a storage whose loads vary by 5 %, each held against the next one."""
    random = np.random.default_rng(5)
    hosts = [1, 2, 4, 8, 16] * 2
    made = [fit_curve([(n, rate * random.lognormal(0, 0.05))
                       for n, rate in rates(hosts, 100.0, 600.0)]) for _ in range(300)]  # fmt: skip
    held = [
        limit.low <= of(after).value <= limit.high
        for before, after in pairwise(made)
        for of in (lambda curve: curve.per_host, lambda curve: curve.total)
        for limit in [of(before)]
    ]
    assert 0.9 <= np.mean(held) <= 0.99
