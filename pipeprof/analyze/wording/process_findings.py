"""Texts of the findings about slow batches, the training process, worker start-up and memory."""

from __future__ import annotations

from typing import Final

from pipeprof.analyze.wording.template import FindingText

_PREFETCHED: Final = (
    "{workers:n worker} × prefetch {prefetch} × {batch_bytes:bytes} a batch: {wanted:bytes} "
    "prefetched. "
)
_FEWER_BATCHES: Final = (
    "«Set prefetch_factor={fewer} instead of {prefetch}, or use smaller batches»"
    "«{fewer:unless}Use fewer workers than {workers}, or smaller batches»"
)
_NO_DIFFERENCE: Final = "num_workers={workers} makes no difference to it."

TEXTS: Final = {
    "head-of-line": FindingText(
        "A few slow batches delay the others",
        "{slow:.0f} of {summary.watched:,} batches took {slow_s:duration} to build, the median "
        "one {usual_s:duration}; {share:percent} of the stall was waiting for them.",
        "«{may_pass:if}Set in_order=False: other batches then overtake a slow one, and their order "
        "changes from run to run. »«Set prefetch_factor={wanted_prefetch} instead of {prefetch}: "
        "then enough batches are ready while a slow one is built. »Cut the slow samples, or "
        "prepare them before training.",
    ),
    "uneven-workers": FindingText(
        "One worker is slower than the others",
        "Worker #{slowest} takes {own_s:duration} to fetch a batch, the others {usual_s:duration} "
        "(medians over {batches:n batch}): {times:.1f} times as long.",
        "Look at the core that it runs on. Look at «{iterable:if}how __iter__ divides the data by "
        "get_worker_info»«{iterable:unless}its samples: the pattern may repeat every num_workers "
        "batches».«{may_pass:if} in_order=False keeps the others from waiting for it.»",
    ),
    "many-small-tensors": FindingText(
        "Batches of many small tensors",
        "A batch is {tensors:n tensor}« of {each_bytes:,.0f} bytes»; the training process spends "
        "{received_s:duration} on receiving them, {share:percent} of its loop.« A batch takes "
        "{work_s:duration} to build.»",
        "Pack them into one tensor in collate_fn, and split it after.«{inline:if} num_workers=0 "
        "instead of {workers} avoids the transfer altogether.» More workers than {workers} do not "
        "help: one process receives.",
    ),
    "large-batches": FindingText(
        "Large batches need much new memory",
        "A batch is {size:bytes} of tensors. Shared memory for it takes a worker about "
        "{new_s:duration}, {in_worker:percent} of the time in which it builds a batch. To give it "
        "back takes the training process about {back_s:duration}, {in_main:percent} of its loop.",
        "Send fewer bytes: images as uint8 are a quarter of float32, and can be converted on the "
        "device.",
    ),
    "pickled-batches": FindingText(
        "Batches are pickled instead of shared",
        "A batch holds no tensors, so all of it goes through a pipe: {received_s:duration} to "
        "unpickle it, {share:percent} of the loop.",
        "Return tensors from collate_fn: they travel by shared memory. More workers than {workers} "
        "do not help: one process unpickles.",
    ),
    "in-memory-data": FindingText(
        "Sending a batch costs more than building it",
        "A batch takes {made_s:duration} to build, and {transfer_s:duration} to reach the training "
        "process.",
        "Set num_workers=0 instead of {workers}: the data is in memory, and needs no workers.",
    ),
    "slow-sampler": FindingText(
        "The sampler delays the training process",
        "{share:percent} of the stall was picking indices: {each_s:duration} a batch, in the "
        "training process.",
        "Draw the indices of an epoch at once (torch.randperm(n).tolist()) instead of one by one, "
        f"or pass a batch_sampler that yields whole lists. {_NO_DIFFERENCE}",
    ),
    "main-process-bound": FindingText(
        "The training process is slow to take its batches",
        "«{share:percent} of the stall passed after the batch had arrived: {each_s:duration} a "
        "batch»«A batch of {tensors:n tensor} took {unpickle_s:duration} to receive; an idle "
        "process needs well below 1 ms». The training process used {main_cores:.1f} of "
        "{cores:n core}.",
        "Look for other Python threads in the training process, which block the interpreter, and "
        f"for too few free cores. {_NO_DIFFERENCE}",
    ),
    "pin-bound": FindingText(
        "Pinning delays the training process",
        "{share:percent} of the stall was pinning: {pin_s:duration} a batch«{several:if} of "
        "{tensors:n tensor}», in one thread.« The copy to the device takes {copied_s:duration}.»",
        "«{many:if}Pack the batch into fewer tensors: each is pinned separately. »Or try "
        "pin_memory=False: it is on, and costs more here than the faster copy can give back.",
    ),
    "pageable-copies": FindingText(
        "Copies to the device from pageable memory",
        "{main.pageable_copies:n copy|copies} in {summary.total:n batch} were from memory that was "
        "not pinned; they take {copied_s:duration} a batch, {share:percent} of the loop.",
        "«{config.pin_memory:unless}Set pin_memory=True; it is off.»«{config.pin_memory:if}"
        "pin_memory is on already: torch does not know this kind of batch. Give it a method "
        "pin_memory(), or build it of tensors, lists and mappings.»",
    ),
    "blocking-copies": FindingText(
        "The training process waits for its copies",
        "{main.blocking_copies:n copy|copies} in {summary.total:n batch} were blocking; they take "
        "{copied_s:duration} a batch.",
        "Use .to(device, non_blocking=True)«{config.pin_memory:unless}, with pin_memory=True: it "
        "is off, and copies from pageable memory block all the same».",
    ),
    "worker-start-up-each-epoch": FindingText(
        "Workers restart in every epoch",
        "Starting and stopping {workers:n worker}« ({config.start_method})» took {each_s:duration} "
        "of a typical epoch of {epoch_s:duration}: {share:percent}, which the verdict leaves out. "
        "The run had {epochs:n epoch}.",
        "Set persistent_workers=True; it is off.",
    ),
    "iterator-per-batch": FindingText(
        "A new iterator is made for each batch",
        "Each of {iterators:n iterator} gave one batch, {first_s:duration} after it was asked for. "
        "«{workers:if}For it, {workers:n worker} began to fetch batches that nobody took. »Each "
        "begins a new epoch.",
        "Iterate the loader by for, or make one iterator before the loop: batches = iter(loader), "
        "and in the loop next(batches).",
    ),
    "epoch-drain": FindingText(
        "Each epoch begins with an empty queue",
        "The first batch of a typical epoch came after {first_s:duration} of {epoch_s:duration}, "
        "{share:percent}, which the verdict leaves out. Workers stay, but prefetch nothing for the "
        "next epoch.",
        "Make epochs longer, for example by a sampler that repeats the data set.",
    ),
    "slower-each-epoch": FindingText(
        "Epochs become slower and slower",
        "Over {epochs:n epoch}, the rate fell from {first:,.1f} to {last:,.1f} batches/s, by "
        "{slower:percent}.",
        "Look for what grows from epoch to epoch: lists in the data set, or the index of a cache. "
        "A cache of downloaded data may be full, and evict what comes next.",
    ),
    "full-cache": FindingText(
        "A cache of downloads is full and evicts",
        "The data set has {cache.data_bytes:bytes}, its cache may have {cache.limit_bytes:bytes} "
        "({cache.option}). When the last epoch began, {cache.held_bytes:bytes} were in it: an "
        "epoch that reads all downloads at least {missing:bytes} again.",
        "Set {cache.option} to {cache.needed_bytes:bytes} or more, if the disk has room. Else "
        "store the data smaller, or nearer.",
    ),
    "far-from-device": FindingText(
        "Workers run far from the accelerator",
        "The device is on NUMA node {node}, and all cores that this process may use are on node "
        "{nodes}. Each batch crosses the link between the nodes.",
        "Start each rank on the node of its device: torchrun --numa-binding=node, or numactl "
        "--cpunodebind={node} --membind={node} before the command.",
    ),
    "workers-without-data": FindingText(
        "Some workers have no data",
        "{idle:,.0f} of {workers:n worker} delivered no batch. The data set is iterable, and seems "
        "to have {busy:n shard}.",
        "Set num_workers={busy:.0f} instead of {workers}, or write the data in at least {workers} "
        "shards.",
    ),
    "every-rank-reads-all": FindingText(
        "Every rank reads the whole data set",
        "Each of {ranks:n rank} reads all of it, and skips what belongs to the others«: {shards:n "
        "shard} cannot be divided evenly».",
        "Write the data in a multiple of {ranks} shards, or divide it by rank in the data set.",
    ),
    "rank-0-reads-for-all": FindingText(
        "Rank 0 reads for all ranks",
        "«{receives:if}This rank is sent its part of each batch: of {ranks:n rank} only rank 0 "
        "takes batches from its loader. Its profile has the figures.»"
        "«{receives:unless}Rank 0 builds the batches of {ranks:n rank}: {rate:,.0f} samples/s, "
        "where their steps would take {needed:,.0f}. It waits {diagnosis.starved_fraction:share} "
        "of the time, and all ranks with it.»",
        "Set dispatch_batches=False in Accelerate's DataLoaderConfiguration: each rank then reads "
        "its own batches. «{iterable:if}Write the data in {ranks} shards or more, and divide them "
        "by rank in the data set: else each rank reads all of it.»",
    ),
    "pickled-data-set": FindingText(
        "Each worker is started with a copy of the data set",
        "Each of {workers:n worker} ({config.start_method}) was sent a pickled copy of "
        "{copy_bytes:bytes}«{several:if}, {all_bytes:bytes} in all». A start took "
        "{start_s:duration}, {pickle_s:duration} of it to pickle. «{again:if}There was one in each "
        "of {starts:n epoch}. »«{several:if}The next worker starts when one has read its copy. »"
        "Without large copies«{several:if} they start together, and» the first batch comes about "
        "{saved_s:duration} sooner.",
        "Keep the data out of the data set object: give it a path, and open or memory-map the file "
        "when a worker first reads. One large tensor is shared; lists, NumPy arrays and open "
        "memory maps are copied.«{again:if} persistent_workers=True starts workers once.»",
    ),
    "slow-start": FindingText(
        "The first batch is slow to arrive",
        "It came after {recording.first_batch_s:duration}«, {share:percent} of the run»«; "
        "{iterator_s:duration} of it to create the iterator». Later batches take "
        "{made_s:duration} to build.",
        "Look at what the data set does when it is first used: listing, opening, filling caches. "
        "«{imports:if}With start method {config.start_method} each of {workers:n worker} also "
        "imports the script's modules.»",
    ),
    "fork-with-threads": FindingText(
        "Workers were forked while a network client was running",
        "{workers:n worker} were forked while {threads:n thread} of a client ran ({names}), of "
        "«{main.threads_at_fork}»«{main.threads_at_fork:unless}unknown» threads in all.",
        "A forked worker has the client's locks but not its thread: it can hang or fail. Create "
        'the client in the worker, or set multiprocessing_context="forkserver".',
    ),
    "shared-memory-too-small": FindingText(
        "Little room in shared memory",
        f"{_PREFETCHED}/dev/shm has {{main.shared_memory_bytes:bytes}} in all. When it is full, a "
        "worker dies of a bus error.",
        f"{_FEWER_BATCHES}; or enlarge it, in a container with --shm-size.",
    ),
    "prefetch-memory": FindingText(
        "Prefetched batches take much of the memory",
        f"{_PREFETCHED}{{main.available_bytes:bytes}} of memory are left.",
        f"{_FEWER_BATCHES}.",
    ),
    "worker-memory-grows": FindingText(
        "The workers' memory grows",
        "Each of {workers:n worker} grew by {grown:bytes} over {began:bytes} while it was "
        "observed, {per_s:rate} each«; at this rate {main.available_bytes:bytes} that are free "
        "last {lasts_s:duration}».",
        "«{forked:if}Forked workers copy the Python objects that they touch: keep the data set's "
        "samples in arrays or tensors, not in lists and dicts. If memory still grows after that, "
        "it is a leak: »«{forked:unless}It is a leak: »"
        "«{config.persistent_workers:if}persistent workers keep what leaks: »look for lists and "
        "caches that grow in the data set.",
    ),
    "descriptors-near-limit": FindingText(
        "Open descriptors near the limit",
        "{most:,.0f} were open in «{in_main:if}the training process»«{in_main:unless}a worker», "
        "{share:percent} of {main.descriptor_limit:,} allowed.«{several:if} Each of the "
        "{tensors:n tensor} of a batch takes one.»",
        "«{many:if}Pack a batch into one tensor. »Raise the limit (ulimit -n). Do not keep "
        "batches, but copies of what you need of them.«{by_descriptor:if} torch.multiprocessing."
        'set_sharing_strategy("file_system") takes none; it is file_descriptor now.»',
    ),
    "too-few-batches": FindingText(
        "Too few batches for a verdict",
        "{summary.measured:n batch} of {summary.total} measured after warm-up; a verdict needs "
        "{least}.",
        "Run longer: more epochs, or more data.",
    ),
    "lost-records": FindingText(
        "Some batches have no record of how they were built",
        "The record of {recording.lost_records:n batch} of {summary.total:,} did not arrive from "
        "its worker.",
        "Their stall is charged to unknown; the other figures leave them out.",
    ),
    "options-lost": FindingText(
        "A framework lost options of the loader",
        "The script's DataLoader has {options}. A framework built another one in its place, which "
        "has not.",
        "Pass them to what builds the loader, or set them with pipeprof run --set.",
    ),
}  # fmt: skip
"""By code. The codes are stable."""
