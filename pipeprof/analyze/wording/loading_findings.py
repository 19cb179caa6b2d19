"""Texts of the findings about cores, storage, and how workers spend their time."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import FindingText

_BUILDER: Final = "«{workers:if}a worker»«{workers:unless}the training process»"
_MORE_WAITING: Final = "«Wait in parallel: num_workers={wanted_workers} instead of {workers}. »"
_MORE_COMPUTING: Final = (
    "«Compute in parallel: num_workers={wanted_workers} instead of {workers}. »«{full:if}More "
    "workers than {workers} do not help: {cores_left:.1f} cores are left to compute on. »"
)
_LARGER_READS: Final = "Read more at once: many samples in one file or shard, larger reads. "
_REQUESTS: Final = (
    "A batch takes {requests_per_batch:n request} of {requests.size.mean:bytes}, "
    "{requests.latency_s.mean:duration} each"
)
_CONCURRENT: Final = "with {requests.in_flight:.1f} concurrent requests"

TEXTS: Final = {
    "native-threads-oversubscribed": FindingText(
        "Native threads inside the workers oversubscribe the cores",
        "{native_share:percent} of the CPU time of a batch is spent in native threads, not in the "
        "workers' main threads. Each of {workers:n worker} runs at least {threads:.0f}: "
        "{all_threads:.0f} or more threads on {cores:n core}, of which {cores_used:.1f} were busy.",
        "Give each worker one thread, in worker_init_fn: cv2.setNumThreads(0), "
        "pyarrow.set_cpu_count(1), your own pools with size 1. Or start the script with "
        "OMP_NUM_THREADS=1. Or keep the threads, and use {fewer:n worker}.",
    ),
    "cpu-oversubscribed": FindingText(
        "The workers need more cores than there are",
        "{workers:n worker} on {cores:n core}; «a batch took {made_s:duration} to build, and "
        "{waiting:percent} of that was waiting for a core. With enough cores, {cores_wanted:.1f} "
        "would be busy»«a batch took {times:.1f} times its CPU time to build»«; the training "
        "process alone uses {busy_main:.1f}».",
        "«Set num_workers to {fewer} instead of {workers}. »«{fewer:unless}Leave num_workers at "
        "{workers}: more would wait, too. »«{fewer:unless}{busy_main:if}Limit the threads of the "
        "training process (torch.set_num_threads). »Only cheaper work per batch, or more cores, "
        "makes loading faster.",
    ),
    "noisy-neighbour": FindingText(
        "Something else uses the cores",
        "«{others:if}{waiting:percent} of the time to build a batch was waiting for a core. This "
        "job used {cores_used:.1f} of {cores:n core} and needed {cores_wanted:.1f}. »"
        "«{some_stolen:if}The host of this virtual machine gave {stolen:percent} of its core time "
        "to others (steal in /proc/stat).»",
        "«{much_stolen:if}Ask the administrator of the host for dedicated cores: no setting here "
        "gives them back. »«{much_stolen:unless}Look for other processes on these cores (top, "
        "other containers of the cgroup), and for other loaders of this job. »Measure again on a "
        "quiet machine before you change num_workers={workers}.",
    ),
    "fewer-cores-than-shown": FindingText(
        "Fewer cores are available than the machine shows",
        "{cores} of {environment.cores_visible} cores may be used here (affinity or cgroup quota).",
        "num_workers={workers} is «{too_many:unless}within them.»«{too_many:if}more than that: for "
        "work that computes, set {cores}.» Size it by os.sched_getaffinity, not os.cpu_count(), or "
        "raise the limit.",
    ),
    "storage-latency-bound": FindingText(
        "Reading waits for the storage's latency«{small:if}{serial:unless}: requests are small»"
        "«{small:unless}{serial:if}: requests are made one after another»"
        "«{small:if}{serial:if}: requests are small, one after another»",
        f"{_REQUESTS}, {_CONCURRENT}. {{diagnosis.evidence:capital}}.",
        "«num_workers={wanted_workers} instead of {workers}: more requests wait at the same time. »"
        f"«{{small:if}}{_LARGER_READS}»«{{serial:if}}Let each worker make several requests at a "
        "time, as open_dataset does. »Or keep the data on a storage with less latency.",
    ),
    "storage-bandwidth-bound": FindingText(
        "The storage is at its bandwidth",
        f"{_REQUESTS}, {{moved:rate}} in all {_CONCURRENT}. {{diagnosis.evidence:capital}}.",
        "Read fewer bytes: only the columns you use, compressed, in a denser format. Or keep the "
        "data on a faster storage. One run cannot tell whether the limit is of each reader or of "
        "all: try num_workers={more} instead of {workers}. If samples/s stay the same, it is of "
        "all.",
    ),
    "s3-client-bound": FindingText(
        "The storage client spends more time computing than waiting",
        f"{_REQUESTS}. {{diagnosis.evidence:capital}}. One process makes at most «{{most:,.0f}} "
        "requests/s»«{most:unless}so many».",
        f"{_LARGER_READS}Use a client that computes less (for S3: obstore or pyarrow instead of "
        "s3fs). «num_workers={more} instead of {workers}: each has a client of its own. »A faster "
        "or nearer storage would not help.",
    ),
    "storage-wait": FindingText(
        "Workers wait for storage«{small:if}, one small request after another»",
        f"While it builds a batch, {_BUILDER} is blocked for {{blocked:percent}} of "
        "{made_s:duration}. It makes {requests_per_batch:n request} of {size:bytes}, "
        "{each_s:duration} each: {moved:rate}.",
        f"{_MORE_WAITING}«{{small:if}}{_LARGER_READS}»Or keep the data on a nearer, faster "
        "storage.",
    ),
    "workers-wait": FindingText(
        "Workers wait instead of computing",
        f"While it builds a batch, {_BUILDER} is blocked for {{blocked:percent}} of "
        "{made_s:duration}, in «{part}»«{part:unless}fetch»: on a network, a disk, a lock or a "
        "sleep. {cores_used:.1f} of {cores:n core} are busy.",
        f"{_MORE_WAITING}«{{part:unless}}Mark parts of the data set with pipeprof.stage(\"read\") "
        "to learn which one waits. »Fewer, larger requests, or a nearer copy of the data, shorten "
        "the wait itself.",
    ),
    "decode-bound": FindingText(
        "Decoding takes most of the loading time",
        "{share:percent} of the {made_s:duration} to build a batch is decoding, and a batch takes "
        "{cpu_s:duration} of CPU time.",
        f"{_MORE_COMPUTING}Use a format that is cheaper to decode: columns instead of text, or "
        "smaller or less compressed images. Or decode the data once and keep it.",
    ),
    "compute-bound": FindingText(
        "Building a batch is limited by computing",
        f"A batch takes {{cpu_s:duration}} of CPU time in the {{made_s:duration}} that {_BUILDER} "
        "needs for it; {cores_used:.1f} of {cores:n core} are busy.",
        f"{_MORE_COMPUTING}Use cheaper decoding or transforms, or compute results once and keep "
        "them.",
    ),
    "no-getitems": FindingText(
        "Data in memory is indexed one sample at a time",
        "{recording.indexing.name} holds its data in memory. A batch of {samples:.0f} takes "
        "{made_s:duration} to build. «{gain:unless}The time to index a whole batch was not "
        "measured: pipeprof does not call your data set. »«Timed after the run: "
        "{recording.indexing.one_by_one_s:duration} sample by sample, "
        "{recording.indexing.at_once_s:duration} with one index of each tensor, {gain:.1f}× as "
        "fast.»",
        "Give the data set a method __getitems__(self, indices) that returns the whole batch. "
        "For each tensor use tensor.index_select(0, torch.tensor(indices)). Give the DataLoader a "
        "collate_fn that returns its argument.",
    ),
    "page-cache-flatters": FindingText(
        "The data came from memory, not from storage",
        "The sampled batches read {read:bytes}; the devices moved {moved:bytes} of that. The rest "
        "came from the page cache. «{fits:if}All {in_all:bytes} fit into the {free:bytes} left»"
        "«{fits:unless}All {in_all:bytes} do not fit into the {free:bytes} left»"
        "«{in_all:unless}Whether all data fits into it is unknown».",
        "Do not take this rate for that of the storage: a first epoch, a larger data set or "
        "another machine will read more slowly. Measure with a cold cache, or on more data than "
        "there is memory.",
    ),
    "read-amplification": FindingText(
        "Far more bytes are read than a batch holds",
        f"For a typical batch of {{samples:n sample}} {_BUILDER} reads {{read:bytes}}"
        "«{several:if}, {a_sample:bytes} for a sample». The batch holds {handed:bytes}: "
        "{times:count} times as much is read, at {read_rate:rate}.",
        "«{iterable:if}Read a row group or file once, and yield all that you need of it. »"
        "«{iterable:unless}{several:if}Read a row group once for all of its rows in a batch. The "
        "data set's __getitems__ receives the {samples:n index|indices} of a batch at once, and a "
        "sampler can keep rows of one group together. »"
        "«{iterable:unless}{several:unless}Take all rows of a row group at once, as a batch. »"
        "Read only the columns you use (columns=[…]), and write smaller row groups. Where you use "
        "part of a file (clips, crops, large images), store that part: cut, scaled or computed "
        "once. «{requests:if}fsspec reads ahead by block_size; open() takes it, or "
        "cache_type='none'. »A batch reads as much in any worker: do not change "
        "num_workers={workers} first.",
    ),
}  # fmt: skip
"""By code. The codes are stable."""
