"""Find ranks that a wrong binding lets run on each other's cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from pipeprof.analyze.job.rank_steps import RankSteps


def sharing(ranks: Sequence[RankSteps]) -> Iterator[tuple[str, list[int], int]]:
    """Yield a host, those of its ranks that share cores, and the number of these cores.

    Ranks that may all use the same cores share them as usual, unless there are fewer than ranks.
    """
    hosts: dict[str, list[RankSteps]] = {}
    for rank in ranks:
        if rank.host is not None and rank.cores:
            hosts.setdefault(rank.host, []).append(rank)
    for host, members in hosts.items():
        sets = {rank.rank: frozenset(rank.cores) for rank in members}
        if len(set(sets.values())) == 1:
            cores = next(iter(sets.values()))
            if len(sets) > 1 and len(cores) < len(sets):
                yield host, sorted(sets), len(cores)
            continue
        pairs = [pair for pair in combinations(sets, 2) if sets[pair[0]] & sets[pair[1]]]
        if pairs:
            shared = frozenset[int]().union(*(sets[one] & sets[other] for one, other in pairs))
            yield host, sorted({rank for pair in pairs for rank in pair}), len(shared)
