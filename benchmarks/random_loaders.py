"""Draws loaders at random: the costs of a batch, their places, and the settings of the loader.

A `LoaderSpec` describes a loader completely. It can be pickled, printed in a line, and copied with
some of its costs scaled (`LoaderSpec.cut`). `benchmarks.random_loader_work` runs it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from random import Random
from typing import Literal

Kind = Literal[
    "sleep", "python", "hash", "inflate", "file", "request", "disk", "link", "memory", "tensors",
]  # fmt: skip
"""*python* holds the interpreter lock; *hash* and *inflate* release it. *file* is read from the
page cache; *request* waits for a server on this machine. *disk* is throttled and *link* shaped;
both need root. *memory* is used for the first time and given back, by the kernel. *tensors* are
those of a batch, which are transferred one by one."""
Place = Literal["read", "decode", "transform", "collate", "sampler", "pin", "transfer"]

IN_FETCH: tuple[Place, ...] = ("read", "decode", "transform")
COMPUTING: tuple[Kind, ...] = ("python", "hash", "inflate", "file", "memory")
COUNTED: tuple[Kind, ...] = ("request", "tensors", "disk", "link")
"""Kinds that are cut by reducing their number, not the size of each."""
LAB: tuple[Kind, ...] = ("disk", "link")
_STEPS: tuple[Kind, ...] = ("sleep", "python", "hash", "inflate", "memory")
_KINDS: dict[Place, tuple[Kind, ...]] = {
    "read": ("sleep", "file", "request", *LAB),
    "decode": _STEPS,
    "transform": _STEPS,
    "collate": ("sleep", "python", "hash", "memory"),
    "sampler": ("sleep", "python"),
    "pin": ("sleep",),
    "transfer": ("tensors",),
}
_WEIGHTS: dict[Place, int] = {
    "read": 4, "decode": 4, "transform": 3, "collate": 2, "sampler": 1, "pin": 1, "transfer": 1,
}  # fmt: skip
_PIECE_S: dict[Kind, float] = {
    "request": 1.2e-3, "tensors": 0.2e-3, "disk": 1.6e-3, "link": 1.7e-3,
}  # fmt: skip
"""Approximate seconds of one piece of a kind in `COUNTED`."""
_LEAST_PIECE_S = 0.7e-3
"""Seconds of the shortest piece. A shorter sleep would mostly be overshoot."""
_LEAST_S: dict[Kind, float] = {"tensors": 2.4e-3}
"""Shortest cost. The time to transfer fewer tensors would mostly be that of the batch itself."""
_MOST_S: dict[Kind, float] = {"file": 8e-3, "tensors": 16e-3}
_BATCH_MS, _SHARES = (1.0, 60.0), (0.15, 1.0)
"""Range of all costs together in ms; range of one cost, before they are scaled to that sum."""
_LARGEST_TAIL = 20.0


@dataclass(frozen=True)
class Jitter:
    """The factor on a batch's cost, of mean 1: a log-normal factor, times one with a heavy tail,
    times one for a slow batch at times."""

    sigma: float = 0.0
    """Standard deviation of the logarithm of the log-normal factor."""
    tail: float = 0.0
    """Exponent of a Pareto distribution that is cut off at 20; 0 means no heavy tail."""
    one_in: int = 0
    """One batch in this many is slow, on average; 0 means none is."""
    slow: float = 1.0
    """Factor on the cost of a slow batch."""

    def factor(self, chance: Random) -> float:
        """Return the factor of the next batch."""
        factor = exp(chance.gauss(-(self.sigma**2) / 2, self.sigma))
        if self.tail:
            mean = (self.tail - _LARGEST_TAIL ** (1 - self.tail)) / (self.tail - 1)
            factor *= min(_LARGEST_TAIL, chance.paretovariate(self.tail)) / mean
        if self.one_in:
            mean = 1 + (self.slow - 1) / self.one_in
            factor *= (self.slow if chance.random() < 1 / self.one_in else 1.0) / mean
        return factor

    def __str__(self) -> str:
        parts = [f"σ {self.sigma:g}"]
        if self.tail:
            parts.append(f"Pareto {self.tail:g}")
        if self.one_in:
            parts.append(f"1 in {self.one_in} ×{self.slow:g}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Cost:
    """A cost of each batch, of one kind and in one place."""

    kind: Kind
    place: Place
    pieces: int
    """Pieces per batch, which are spread over its samples in the stages of a fetch."""
    piece_s: float
    """Nominal seconds of a piece. The real speed of a core matters little, since costs are cut by
    a share."""
    jitter: Jitter = Jitter()

    @property
    def batch_s(self) -> float:
        """Approximate seconds per batch while nothing else runs."""
        return self.pieces * self.piece_s

    @property
    def computes(self) -> bool:
        return self.kind in COMPUTING

    def times(self, factor: float) -> Cost:
        """Return this cost scaled by exactly ``factor``."""
        if self.kind not in COUNTED:
            return replace(self, piece_s=factor * self.piece_s)
        pieces = factor * self.pieces
        if abs(pieces - round(pieces)) > 1e-9:
            raise ValueError(f"{self.pieces} × {factor} is no number of {self.kind}")
        return replace(self, pieces=round(pieces))

    def __str__(self) -> str:
        return (
            f"{self.place} {self.kind} {self.batch_s * 1e3:.1f} ms ({self.pieces}; {self.jitter})"
        )


@dataclass(frozen=True)
class LoaderSpec:
    """A loader, and the training step that it feeds."""

    seed: int
    """Seed from which it was drawn."""
    costs: tuple[Cost, ...]
    annotated: bool
    """Whether its stages are named by `pipeprof.stage`; else it is a black box."""
    num_workers: int = 0
    prefetch_factor: int = 2
    in_order: bool = True
    start_method: Literal["fork", "spawn"] = "fork"
    iterable: bool = False
    """Whether its data set is iterable, without end in each worker; else it is map-style."""
    batch_size: int = 1
    step_s: float = 0.0

    @property
    def pins(self) -> bool:
        """Whether the loader pins memory."""
        return any(cost.place == "pin" for cost in self.costs)

    def causes_of(self, cost: Cost) -> tuple[str, ...]:
        """Return the keys of `Profile.blame` to which the cost belongs, that of its stage first."""
        stage: str = cost.place
        if stage in IN_FETCH and not self.annotated:
            # workers' reads of files are observed
            observed = self.num_workers and cost.kind in ("file", "disk")
            stage = "read" if observed else "fetch"
        makes = cost.place in IN_FETCH or cost.place == "collate"
        return (stage, "worker-cpu") if makes and cost.computes else (stage,)

    def costs_of(self, cause: str) -> tuple[Cost, ...]:
        """Return all costs that belong to the cause."""
        return tuple(cost for cost in self.costs if cause in self.causes_of(cost))

    @property
    def causes(self) -> tuple[str, ...]:
        """Causes to which a cost belongs, each once; that of a resource is last."""
        found = dict.fromkeys(self.causes_of(cost)[0] for cost in self.costs)
        found.update(dict.fromkeys(cause for cost in self.costs for cause in self.causes_of(cost)))
        return tuple(found)

    def cut(self, costs: Collection[Cost], factor: float) -> LoaderSpec:
        """Return the same loader with these costs scaled by ``factor``."""
        scaled = tuple(cost.times(factor) if cost in costs else cost for cost in self.costs)
        return replace(self, costs=scaled)

    @property
    def setting(self) -> str:
        if not self.num_workers:
            workers = "no workers"
        else:
            order = "" if self.in_order else ", any order"
            workers = f"{self.num_workers} × {self.prefetch_factor} {self.start_method}{order}"
        style = "iterable" if self.iterable else "map"
        named = "annotated" if self.annotated else "black box"
        return (
            f"{workers}, {style}, {named}, batch {self.batch_size}, step {self.step_s * 1e3:.1f} ms"
        )

    def __str__(self) -> str:
        return f"{self.seed}: {self.setting}: {'; '.join(map(str, self.costs))}"


def draw(seed: int, lab: Collection[Kind] = ()) -> LoaderSpec:
    """Draw the loader of that seed. ``lab``: which of the kinds that need root may occur."""
    chance = Random(seed)
    workers = chance.choice((0, 1, 1, 2, 2, 3, 4, 6))
    spec = LoaderSpec(
        seed=seed,
        costs=(),
        annotated=chance.random() < 0.5,
        num_workers=workers,
        prefetch_factor=chance.randint(1, 4),
        in_order=chance.random() < 0.75,
        # starting a worker by spawn takes seconds of a core
        start_method="spawn" if 1 <= workers <= 3 and chance.random() < 0.2 else "fork",
        iterable=chance.random() < 0.3,
        batch_size=chance.choice((1, 2, 4, 8, 16)),
        step_s=chance.choice((0.0, chance.uniform(0.0005, 0.030), chance.uniform(0.0005, 0.010))),
    )
    return replace(spec, costs=_costs(chance, spec, lab))


def _costs(chance: Random, spec: LoaderSpec, lab: Collection[Kind]) -> tuple[Cost, ...]:
    """Draw one to four costs with a random sum, within the limits of each kind."""
    places = [place for place in _KINDS if _is_there(place, spec)]
    weights = [_WEIGHTS[place] for place in places]
    chosen = [
        (place, _kind(chance, place, lab))
        for place in chance.choices(places, weights, k=chance.randint(1, 4))
    ]
    chosen = list(dict.fromkeys(chosen))
    low, high = log(_BATCH_MS[0] / 1e3), log(_BATCH_MS[1] / 1e3)
    total_s = exp(chance.uniform(low, high))
    shares = [chance.uniform(*_SHARES) for _ in chosen]
    return tuple(
        _cost(chance, kind, place, total_s * share / sum(shares), spec.batch_size)
        for (place, kind), share in zip(chosen, shares, strict=True)
    )


def _is_there(place: Place, spec: LoaderSpec) -> bool:
    if place == "transfer":
        return spec.num_workers > 0
    return place != "sampler" or not spec.iterable


def _kind(chance: Random, place: Place, lab: Collection[Kind]) -> Kind:
    return chance.choice([kind for kind in _KINDS[place] if kind not in LAB or kind in lab])


def _cost(chance: Random, kind: Kind, place: Place, batch_s: float, samples: int) -> Cost:
    batch_s = max(_LEAST_S.get(kind, _LEAST_PIECE_S), min(batch_s, _MOST_S.get(kind, batch_s)))
    if kind in COUNTED:
        piece_s = _PIECE_S[kind]
        fours = max(1, round(batch_s / piece_s / 4))
        return Cost(kind, place, 4 * fours, piece_s, _jitter(chance, kind))
    pieces = 1 if place not in IN_FETCH else max(1, min(samples, int(batch_s / _LEAST_PIECE_S)))
    return Cost(kind, place, pieces, batch_s / pieces, _jitter(chance, kind))


def _jitter(chance: Random, kind: Kind) -> Jitter:
    if kind in ("tensors", *LAB):
        return Jitter()  # these have no jitter, or their own
    sigma = chance.choice((0.1, 0.3, 0.6))
    form: Sequence[Jitter] = (
        Jitter(sigma),
        Jitter(sigma),
        Jitter(0.1, tail=chance.choice((1.6, 2.0, 2.5))),
        Jitter(0.1, one_in=chance.choice((8, 20)), slow=chance.choice((4.0, 8.0))),
    )
    return chance.choice(form)
