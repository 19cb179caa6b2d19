"""Say which part of the storage limits reading, and why, or what is missing to tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pipeprof.analyze.wording.template import Figures, fill
from pipeprof.model import RequestStats


def storage_evidence(code: str, figures: Figures, requests: RequestStats | None) -> str:
    """Return the sentence for an evidence code of `profile.storage_bottleneck`."""
    return fill(_EVIDENCE[code], figures, requests)


def explain_missing_fit(requests: RequestStats | None) -> RequestStats | None:
    """Replace the code in ``fit_missing`` by its sentence."""
    if requests is None:
        return None
    return replace(requests, fit_missing=fill(_FIT_MISSING[requests.fit_missing], {}, requests))


_CANNOT_TELL: Final = "one run cannot tell latency from bandwidth here: "
_EVIDENCE: Final = {
    "no-requests": "no requests were observed, which would tell what limits reading",
    "few-requests": "{count:n request} are too few to tell what limits reading",
    "copying": "reading is {busy:percent} computing, {client_cpu_s:duration} of CPU a request: "
    "copies from memory or by the kernel, not a wait for storage",
    "client": "the client spends {client_cpu_s:duration} of CPU on a request, {busy:percent} of a "
    "core while its store is read«, not counting the {core_wait:percent} in which it waits for a "
    "core»",
    "cores": "{core_wait:percent} of the time in which storage is read, a core is waited for",
    "first-byte": "{share:percent} of a request's {latency_s.mean:duration} is the wait for its "
    "first byte",
    "sizes": "by the sizes and times of {count:n request}, {fit.latency_share:percent} of their "
    "time (95 %: {low:.0f}–{high:.0f} %) does not depend on how many bytes they ask for",
    "no-full-link": "requests of {size.mean:bytes} take {latency_s.mean:duration}, at {moved:rate} "
    "in all, which fills no link",
    "no-such-latency": "requests of {size.mean:bytes} take {latency_s.mean:duration}, longer than "
    "a storage takes to answer",
    "lone-requests": "alone, a request of {size.mean:bytes} takes {alone_s:duration}, "
    "{share:percent} of it whatever its size«, and {slowdown:.1f} times as long with concurrent "
    "requests; that names neither latency nor bandwidth»",
    "no-fit": f"{_CANNOT_TELL}{{fit_missing}}, and when the first byte came is not known; a run "
    "with other num_workers or request sizes would",
    "wide-fit": f"{_CANNOT_TELL}by their sizes, {{low:.0f}}–{{high:.0f}} % of the requests' time "
    "is latency (95 %)«{concurrent:if}, or waiting for each other's bytes»",
}
_FIT_MISSING: Final = {
    "": "",
    "few-requests": "only {count:n request} came",
    "equal-sizes": "all requests are of about one size",
    "larger-are-faster": "larger requests took no longer, but shorter",
}
