"""Run a script whose torchvision was built for CUDA beside a torch that was not.

The operators of such a torchvision do not load, and so its import fails where it describes them. No
script of the tests calls one: `python without_cuda.py SCRIPT …` declares them without a body.
"""

import os
import runpy
import sys

import torch

OPERATORS = (
    "deform_conv2d", "_deform_conv2d_backward", "nms", "qnms", "ps_roi_align",
    "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward", "roi_align",
    "_roi_align_backward", "roi_pool", "_roi_pool_backward",
)  # fmt: skip

if __name__ == "__main__":
    if torch.version.cuda is None:
        for name in OPERATORS:
            torch.library.define(f"torchvision::{name}", "(Tensor rows) -> Tensor")
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
