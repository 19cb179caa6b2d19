"""Thresholds that several modules of the analysis go by, each with its reason."""

from __future__ import annotations

from typing import Final

LEAST_BATCHES_FOR_VERDICT: Final = 10
"""Measured batches. With fewer, the interval of the starved fraction is as wide as the scale."""
LEAST_BATCHES_TO_SIMULATE: Final = 20
"""Batches of a run. Fewer do not show how often a slow one comes."""
LEAST_SLOW_BATCHES: Final = 20
"""To predict from. Fewer give a direction of the change, and no number."""
LEAST_GAIN: Final = 1.1
"""Times the throughput. Less than a tenth more is not worth a change."""
MOST_GAIN: Final = 100.0
"""Times the throughput. No accelerator takes so much more; a loop without a step does."""
MOST_CORES: Final = 96
"""That a machine has for the loaders of one training process. To get more is no advice."""
EQUALLY_FAST: Final = 0.03
"""Of the throughput. Settings that are nearer to the fastest count as equally fast."""
MANY_TENSORS: Final = 16
"""In a batch. Each travels by itself, for a fraction of a millisecond or more."""
SLOWEST_LINK: Final = 5e6
"""Bytes/s. Nobody trains from a slower storage, so it does not hold up what moves less."""
DRIFT_OF_COMPUTING: Final = 0.07
"""Of the time that workers compute. How cores are shared differs from run to run."""
DRIFT_OF_HAND_OVER: Final = 0.5
"""Of the time that the accelerator waits for batches to be handed over, where runs are too short
to measure their drift. How soon one process wakes another differs from run to run."""
TO_BLAME: Final = 0.25
"""Of the stall. A cause with a smaller share is not the one to cure first."""
MOSTLY: Final = 0.5
"""Of a time. What takes more of it is what the time goes into."""
SMALL_REQUEST: Final = 4e6
"""Bytes. Below it a request's latency outweighs its transfer on any storage worth its name."""
DRIFT_OF_WAITING: Final = 0.03
"""Of the time that workers wait. By so much do two runs of one setting differ by themselves."""
