"""What findings say of cores, of storage, and of what a worker's time goes into."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import FindingText

_MAKER: Final = "«{workers:if}a worker»«{workers:unless}the training process»"
_WAIT_IN_PARALLEL: Final = "«Wait in parallel: num_workers={wanted_workers} instead of {workers}. »"
_COMPUTE_IN_PARALLEL: Final = (
    "«Compute in parallel: num_workers={wanted_workers} instead of {workers}. »«{full:if}More "
    "workers than {workers} do not help: {cores_left:.1f} cores are left to compute on. »"
)
_ASK_FOR_MORE: Final = "Ask for more at once: many samples in one file or shard, larger reads. "
_REQUESTS: Final = (
    "A batch takes {requests_per_batch:n request} of {requests.size.mean:bytes}, "
    "{requests.latency_s.mean:duration} each"
)

TEXTS: Final = {
    "native-threads-oversubscribed": FindingText(
        "Native threads inside the workers crowd the cores",
        "{native_share:percent} of the CPU time to make a batch is spent by threads beside the "
        "workers' own, at least {threads:.0f} in each of {workers:n worker}: {all_threads:.0f} or "
        "more threads on {cores:n core}, of which {cores_used:.1f} were busy.",
        "Give each worker one thread, in worker_init_fn: cv2.setNumThreads(0), "
        "pyarrow.set_cpu_count(1), pools of your own of size 1; or start the script with "
        "OMP_NUM_THREADS=1. Or keep the threads, and use {fewer:n worker}.",
    ),
    "cpu-oversubscribed": FindingText(
        "More work for the cores than there are cores",
        "{workers:n worker} on {cores:n core}; «making a batch took {made_s:duration}, and "
        "{waiting:percent} of that was waiting for a core. {cores_wanted:.1f} cores would be busy "
        "if there were as many»«making a batch took {times:.1f} times its CPU time»«; the training "
        "process alone uses {busy_main:.1f}».",
        "«Set num_workers to {fewer} instead of {workers}. »«{fewer:unless}Leave num_workers at "
        "{workers}: more would wait, too. »«{fewer:unless}{busy_main:if}Limit the threads of the "
        "training process (torch.set_num_threads). »Only cheaper work per batch, or more cores, "
        "makes loading faster.",
    ),
    "noisy-neighbour": FindingText(
        "Something else uses the cores",
        "«{others:if}{waiting:percent} of making a batch was waiting for a core, while this job "
        "used {cores_used:.1f} of {cores:n core} and wanted {cores_wanted:.1f}. »«{some_stolen:if}"
        "The host of this virtual machine gave {stolen:percent} of its core time to others (steal "
        "in /proc/stat).»",
        "«{much_stolen:if}Ask whoever runs the host for cores of its own: no setting here gives "
        "them back.»«{much_stolen:unless}Look for other processes on these cores (top, or the "
        "cgroup's neighbours), and for other loaders of this job.» Measure again on a quiet "
        "machine before changing num_workers={workers}.",
    ),
    "fewer-cores-than-shown": FindingText(
        "Fewer cores to use than the machine shows",
        "{cores} of {environment.cores_visible} cores may be used here (affinity or cgroup quota).",
        "num_workers={workers} is «{too_many:unless}within them.»«{too_many:if}more than that: for "
        "work that computes, set {cores}.» Size it by os.sched_getaffinity, not os.cpu_count(), or "
        "raise the limit.",
    ),
    "storage-latency-bound": FindingText(
        "Waiting for answers of the storage«{small:if}{serial:unless}: requests are small»"
        "«{small:unless}{serial:if}: requests are one after another»"
        "«{small:if}{serial:if}: requests are small, one after another»",
        f"{_REQUESTS}, {{requests.in_flight:.1f}} under way at a time. "
        "{diagnosis.evidence:capital}.",
        "«num_workers={wanted_workers} instead of {workers}: more wait side by side. »"
        f"«{{small:if}}{_ASK_FOR_MORE}»«{{serial:if}}Let each worker ask for several at a time, as "
        "open_dataset does. »Or keep the data on a nearer storage.",
    ),
    "storage-bandwidth-bound": FindingText(
        "The storage gives no more bytes a second",
        f"{_REQUESTS}, {{moved:rate}} in all with {{requests.in_flight:.1f}} under way at a time. "
        "{diagnosis.evidence:capital}.",
        "Move fewer bytes: read only the columns you use, compress, choose a denser format; or "
        "keep the data on a faster storage. Whether each reader or all together are held back, "
        "one run cannot tell: try num_workers={more} instead of {workers}. If samples/s stay, the "
        "storage is full.",
    ),
    "s3-client-bound": FindingText(
        "The storage's client computes more than it waits",
        f"{_REQUESTS}. {{diagnosis.evidence:capital}}. One process comes to «{{most:,.0f}} "
        "requests/s»«{most:unless}so many» at the most.",
        f"{_ASK_FOR_MORE}Use a client that computes less (for S3: obstore or pyarrow instead of "
        "s3fs). «num_workers={more} instead of {workers}: each has a client of its own. »A faster "
        "or nearer storage would not help.",
    ),
    "storage-wait": FindingText(
        "Workers wait for storage«{small:if}, one small request after another»",
        f"To make a batch {_MAKER} is blocked {{blocked:percent}} of {{made_s:duration}}. It makes "
        "{requests_per_batch:n request} of {size:bytes}, {each_s:duration} each: {moved:rate} in "
        f"all for {_MAKER}.",
        f"{_WAIT_IN_PARALLEL}«{{small:if}}{_ASK_FOR_MORE}»Or keep the data on a nearer, faster "
        "storage.",
    ),
    "workers-wait": FindingText(
        "Workers wait instead of computing",
        f"To make a batch {_MAKER} is blocked {{blocked:percent}} of {{made_s:duration}}, on a "
        "network, a disk, a lock or a sleep in «{part}»«{part:unless}fetch»; {cores_used:.1f} of "
        "{cores:n core} are busy.",
        f"{_WAIT_IN_PARALLEL}«{{part:unless}}Name its parts with pipeprof.stage(\"read\") to see "
        "which one waits. »Fewer, larger requests, or a nearer copy of the data, shorten the wait "
        "itself.",
    ),
    "decode-bound": FindingText(
        "Decoding is what loading costs",
        "{share:percent} of the {made_s:duration} to make a batch is decoding, and a batch takes "
        "{cpu_s:duration} of CPU time.",
        f"{_COMPUTE_IN_PARALLEL}A cheaper format shortens the work itself: columns instead of "
        "text, smaller or less compressed images, or data that is decoded once and kept.",
    ),
    "compute-bound": FindingText(
        "Making a batch is computing",
        f"A batch takes {{cpu_s:duration}} of CPU time in the {{made_s:duration}} that {_MAKER} "
        "needs for it; {cores_used:.1f} of {cores:n core} are busy.",
        f"{_COMPUTE_IN_PARALLEL}Cheaper decoding or transforms, or results that are computed once "
        "and kept, shorten the work itself.",
    ),
    "no-getitems": FindingText(
        "Data in memory is indexed one sample at a time",
        "{recording.indexing.name} holds its data in memory; to make a batch of {samples:.0f} "
        "takes {made_s:duration}.«{gain:unless} What one index would take was not measured: the "
        "data set's code is yours.»« Timed after the run: "
        "{recording.indexing.one_by_one_s:duration} sample by sample, "
        "{recording.indexing.at_once_s:duration} by one index of each tensor, {gain:.1f}× as "
        "fast.»",
        "Give the data set a method __getitems__(self, indices) that returns the batch, of each "
        "tensor tensor.index_select(0, torch.tensor(indices)), and the DataLoader a collate_fn "
        "that returns what it is given.",
    ),
    "page-cache-flatters": FindingText(
        "The data came from memory, not from storage",
        "Of {read:bytes} that sampled batches read, the devices moved {moved:bytes}. It fits into "
        "the page cache; «{fits:if}{in_all:bytes} in all fit into the {free:bytes} left»"
        "«{fits:unless}{in_all:bytes} in all do not fit into the {free:bytes} left»"
        "«{in_all:unless}whether all of it does is not known here».",
        "Do not take this rate for that of the storage: a first epoch, a larger data set or "
        "another machine will read more slowly. Measure with a cold cache, or on more data than "
        "there is memory.",
    ),
    "read-amplification": FindingText(
        "Far more is read than is handed over",
        f"To make a typical batch of {{samples:n sample}} {_MAKER} reads {{read:bytes}}"
        "«{several:if}, {a_sample:bytes} for a sample», and hands over {handed:bytes}: "
        "{times:count} times as much is read, at {read_rate:rate}.",
        "«{iterable:if}Read a row group or file once, and yield all that is wanted of it. »"
        "«{iterable:unless}{several:if}Read a row group once for all of its rows in a batch: the "
        "data set's __getitems__ is given the {samples:n index|indices} of a batch at once, and a "
        "sampler may keep rows of one group together. »"
        "«{iterable:unless}{several:unless}Take all rows of a row group at once, as a batch. »"
        "Read the columns in use only (columns=[…]), and write smaller row groups. Of files of "
        "which a part is used (clips, crops, large images), keep that part: cut, scaled or "
        "computed once. «{requests:if}fsspec reads ahead of what is asked for: block_size, or "
        "cache_type='none', in open() says how far. »A batch takes as much in any worker, so "
        "num_workers={workers} is not what to change first.",
    ),
}  # fmt: skip
"""By code. These are stable."""
