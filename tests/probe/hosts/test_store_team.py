"""Hosts that meet at a real store of torch: a thread for each."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
import torch.distributed as dist

from pipeprof.errors import StorageError, UsageError
from pipeprof.measure.job_place import find_job_place
from pipeprof.model import JobPlace
from pipeprof.probe.hosts import store_team
from pipeprof.probe.hosts.orders import Answer, Load, Look, Order, Ready, Stop
from pipeprof.probe.hosts.store_team import (
    MeetingPoint,
    StoreTeam,
    find_meeting_point,
    first_node,
    follow,
    join,
    open_store,
)
from pipeprof.probe.result import LoadSpec
from pipeprof.probe.work import Slice

LOAD = Load(LoadSpec("random", 4096, 2), 1.0, 100, 10, seed=1)


@dataclass
class Notes:
    """A member that notes what it is asked to do, and answers with its name."""

    name: str
    asked: list[tuple[Order, Slice]] = field(default_factory=list)

    def answer(self, order: Order, part: Slice) -> Answer:
        self.asked.append((order, part))
        return Answer(self.name)


def place(rank: int, ranks: int, local_rank: int | None = 0) -> JobPlace:
    return JobPlace("Slurm", rank, world_size=ranks, local_rank=local_rank)


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture
def stores(port):
    """Return a function that opens the store of one job: the first call serves it."""
    opened = []

    def of_a_host():
        point = MeetingPoint("127.0.0.1", port, serve=not opened)
        opened.append(open_store(point, None))
        return opened[-1]

    return of_a_host


def led(stores, hosts: int) -> tuple[StoreTeam, list[Notes], list[threading.Thread]]:
    """A team of so many hosts, the first of which leads it here."""
    members = [Notes(f"node{host}") for host in range(hosts)]
    first = stores()
    assert join(first, place(0, hosts)) == 0
    threads = []
    for host in range(1, hosts):
        store = stores()
        assert join(store, place(host, hosts)) == host
        threads.append(threading.Thread(target=follow, args=(store, host, members[host])))
        threads[-1].start()
    return StoreTeam(first, place(0, hosts), members[0]), members, threads


def test_hosts_carry_out_orders_and_read_disjoint_parts(stores):
    team, members, threads = led(stores, 4)
    assert team.hosts == [0, 1, 2, 3]
    answers = team.order([0, 1, 2, 3], Look(), 20)
    assert {host: each.host for host, each in answers.items()} == {
        0: "node0", 1: "node1", 2: "node2", 3: "node3",
    }  # fmt: skip
    assert set(team.order([3, 1], LOAD, 20)) == {1, 3}
    assert members[3].asked[-1] == (LOAD, Slice(0, 2))
    assert members[1].asked[-1] == (LOAD, Slice(1, 2))
    assert [order for order, _ in members[2].asked] == [Look()]
    team.close()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert all(isinstance(member.asked[-1][0], Stop) for member in members)


def test_a_host_that_does_not_answer_in_time_has_no_answer(stores):
    first = stores()
    join(first, place(0, 2))
    join(stores(), place(1, 2))  # and does nothing more
    team = StoreTeam(first, place(0, 2), Notes("node0"))
    assert set(team.order([0, 1], Ready(1), 0.5)) == {0}


def test_one_process_of_a_host_takes_part(stores):
    first = stores()
    assert join(first, place(0, 4)) == 0
    assert join(stores(), place(1, 4, local_rank=1)) is None
    assert join(stores(), place(3, 4, local_rank=1)) is None
    assert join(stores(), place(2, 4)) == 2
    assert StoreTeam(first, place(0, 4), Notes("node0")).hosts == [0, 2]


def test_hosts_have_the_numbers_of_their_ranks_in_whatever_order_they_come(stores):
    served = stores()
    for rank in (3, 1, 0, 2):
        assert join(stores(), place(rank, 4)) == rank
    assert StoreTeam(served, place(0, 4), Notes("node0")).hosts == [0, 1, 2, 3]


def test_ranks_that_do_not_come_are_counted(stores, monkeypatch):
    monkeypatch.setattr(store_team, "_MEET_S", 0.2)
    first = stores()
    join(first, place(0, 3))
    assert StoreTeam(first, place(0, 3), Notes("node0")).notes == ["2 of 3 ranks did not come"]


def test_hosts_end_when_the_first_one_has_died(port):
    served = dist.TCPStore("127.0.0.1", port, None, True, timedelta(seconds=5), False)
    store = open_store(MeetingPoint("127.0.0.1", port, serve=False), None)
    del served
    with pytest.raises(StorageError, match="The first host of the probe has ended"):
        follow(store, 1, Notes("node1"))


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(StorageError, match=f"no store can be served at .*port {number}"):
            open_store(MeetingPoint("127.0.0.1", number, serve=True), None)


STEP = {
    "SLURM_JOB_ID": "200505", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0",
    "SLURM_STEP_NUM_TASKS": "4", "SLURM_STEP_TASKS_PER_NODE": "1(x4)",
    "SLURM_STEP_NODELIST": "gpu[07-09,12]",
}  # fmt: skip
TORCHRUN = {
    "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "GROUP_RANK": "1",
    "TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_USE_AGENT_STORE": "True",
    "MASTER_ADDR": "head", "MASTER_PORT": "4321",
}  # fmt: skip


@pytest.mark.parametrize(
    ("variables", "point"),
    [
        (STEP, MeetingPoint("gpu07", 20_505, True)),
        (STEP | {"SLURM_PROCID": "2"}, MeetingPoint("gpu07", 20_505, False)),
        (STEP | {"MASTER_ADDR": "head"}, MeetingPoint("head", 20_505, True)),
        (STEP | {"MASTER_ADDR": "head", "MASTER_PORT": "7"}, MeetingPoint("head", 7, True)),
        (TORCHRUN, MeetingPoint("head", 4321, False)),
        (TORCHRUN | {"RANK": "0"}, MeetingPoint("head", 4321, False)),
    ],
    ids=["srun", "another rank", "an address", "and a port", "torchrun", "rank 0 of it"],
)
def test_where_hosts_meet(variables, point):
    assert find_meeting_point(find_job_place(variables), variables) == point


def test_a_launcher_that_does_not_say_where_rank_0_is():
    variables = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    with pytest.raises(UsageError, match="Open MPI does not say where rank 0 is: set MASTER_ADDR"):
        find_meeting_point(find_job_place(variables), variables)
    with pytest.raises(UsageError, match="MASTER_PORT is 'x'; it must be the number"):
        find_meeting_point(find_job_place(STEP), STEP | {"MASTER_PORT": "x"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("gpu7", "gpu7"), ("gpu[07-12,15],login", "gpu07"), ("a[3],b", "a3"), ("a,b", "a"),
     ("rack[1-2]-n", "rack1-n"), ("", "")],
)  # fmt: skip
def test_the_first_of_slurms_nodes(nodes, first):
    assert first_node(nodes) == first
