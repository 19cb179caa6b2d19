"""Thresholds that several modules of the analysis share, each with its unit and its reason."""

from __future__ import annotations

from typing import Final

LEAST_BATCHES_FOR_VERDICT: Final = 10
"""Fewest measured batches for a verdict. With fewer, the starved fraction may be anything."""
LEAST_BATCHES_TO_SIMULATE: Final = 20
"""Fewest batches to simulate from. Fewer do not show how often a slow batch comes."""
LEAST_SLOW_BATCHES: Final = 20
"""Fewest slow batches for a predicted number. Fewer give only the direction of a change."""
LEAST_UNDISTURBED: Final = 10
"""Fewest undisturbed batches for a median. Fewer may all be unusual."""
LEAST_GAIN: Final = 1.1
"""Smallest ratio of throughputs that makes a change worth proposing. Less is not worth the work."""
MOST_GAIN: Final = 100.0
"""Largest credible ratio of throughputs. Only a loop without a training step exceeds it."""
MOST_CORES: Final = 96
"""Most cores that a machine has for the loaders of one training process."""
SPARE_CAPACITY: Final = 1.15
"""Factor by which workers should exceed the demand. Where they just meet it, the accelerator waits
for every late batch."""
EQUALLY_FAST: Final = 0.03
"""Share of the throughput. Settings that are nearer to the fastest count as equally fast."""
EQUAL_WITHIN: Final = 0.05
"""Relative difference of rates or costs. Those that differ by less count as equal, as simulations
repeat real runs no better."""
MINOR_SHARE: Final = 0.1
"""Share of a batch's fetch time. Smaller costs neither compete for cores nor fill a storage, and
too little is measured of them to compare them."""
MANY_TENSORS: Final = 16
"""Tensors of a batch that are many. Each is transferred separately, which takes 0.2 ms or more."""
SLOWEST_LINK: Final = 5e6
"""Bytes/s of the slowest storage used for training. What moves less is not limited by bandwidth."""
SEVERAL_REQUESTS: Final = 1.5
"""Mean number of concurrent requests. Below it they follow one another; above it they may wait for
each other."""
SMALL_REQUEST: Final = 4e6
"""Bytes. The latency of a smaller request outweighs its transfer on any usable storage."""
LEAST_BYTES_READ: Final = 4096
"""Bytes that read calls return for a batch. Fewer are messages between worker and main."""
DRIFT_OF_COMPUTING: Final = 0.07
"""Relative difference of equal runs, in the time that workers compute. Each run shares its cores
differently. `benchmarks.prediction` prints it as noise."""
DRIFT_OF_WAITING: Final = 0.03
"""The same in the time that workers wait."""
DRIFT_OF_HAND_OVER: Final = 0.5
"""The same in the time that the accelerator waits for batches to be handed over. It depends on how
soon processes wake, and applies to runs that are too short to measure their drift."""
TO_BLAME: Final = 0.25
"""Share of the stall. A cause with a smaller share is not the first to address."""
MOSTLY: Final = 0.5
"""Share of a time or an amount. What exceeds it is its main part."""
