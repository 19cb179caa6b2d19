"""Check that the legacy trace viewer accepts our trace: each track, span and arrow, no warning.

The viewer is the chrome://tracing that TensorBoard's profiler plugin contains. It needs features
that Chrome had ten years ago, which a package from npm provides.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import orjson
import torch
import torch_tb_profiler
from playwright.sync_api import Browser, Playwright, sync_playwright
from torch.utils.data import DataLoader, Dataset

import pipeprof
from pipeprof.model import Profile
from pipeprof.report.trace.chrome import render_trace

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / ".bench-peers" / "viewer"
OLD_CHROME = "webcomponents.js", "0.7.24"
PICTURE = ROOT / ".screens" / "legacy-viewer.png"
_ASK = """() => {
    const model = document.querySelector('#trace-viewer').model;
    return model && {
        warnings: model.importWarnings.map(warning => warning.message),
        arrows: model.flowEvents.length,
        tracks: Object.fromEntries(model.getAllThreads().map(
            track => [`${track.parent.name}: ${track.name}`, track.sliceGroup.length])),
    };
}"""
_NO_PARENT = """window.addEventListener('message', message => {
    if (message.data.msg) message.stopImmediatePropagation();
})"""
"""The page sends its parent a message when it is ready. A page without a parent receives that
message itself, and would read it as a trace."""
_OPEN = "text => window.postMessage({name: 'pipeprof', data: text}, '*')"


class Slow(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.003)
        return torch.zeros(4)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def real_profile() -> Profile:
    loader = pipeprof.wrap(DataLoader(Slow(), 8, num_workers=2))
    for _ in loader:
        time.sleep(0.008)
    return loader.profile()


def old_chrome() -> Path:
    """Return the script that adds the removed features to a present-day Chrome."""
    name, version = OLD_CHROME
    packed = FOLDER / f"{name}-{version}.tgz"
    if not packed.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=FOLDER, check=True)
    script = FOLDER / "webcomponents.min.js"
    with tarfile.open(packed) as whole:
        member = whole.extractfile("package/webcomponents.min.js")
        assert member is not None
        script.write_bytes(member.read())
    return script


def chromium(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(
        executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-dev-shm-usage"]
    )


def shown(trace: bytes) -> dict[str, Any]:
    """Open the trace in the viewer, save a picture, and return what it shows."""
    script = old_chrome()
    static = Path(torch_tb_profiler.__file__).parent / "static"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(static)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        page = browser.new_page(viewport={"width": 1400, "height": 500})
        page.add_init_script(_NO_PARENT)
        page.route("https://cdnjs.cloudflare.com/**", lambda request: request.fulfill(path=script))
        page.goto(f"http://127.0.0.1:{server.server_port}/trace_embedding.html")
        page.wait_for_selector("#trace-viewer", state="attached", timeout=60_000)
        page.evaluate(_OPEN, trace.decode())
        found = page.wait_for_function(_ASK, timeout=60_000).json_value()
        PICTURE.parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURE)
        browser.close()
    server.shutdown()
    return dict(found)


def main() -> int:
    trace = render_trace(real_profile(), compressed=False)
    events = orjson.loads(trace)["traceEvents"]
    found = shown(trace)
    spans = sum(each["ph"] == "X" for each in events)
    arrows = sum(each["ph"] == "s" for each in events)
    print(f"tracks {len(found['tracks'])}, spans {sum(found['tracks'].values())} of {spans}, "
          f"arrows {found['arrows']} of {arrows}, warnings {len(found['warnings'])}; "
          f"picture: {PICTURE.relative_to(ROOT)}")  # fmt: skip
    print(*found["warnings"], sep="\n", end="")
    whole = sum(found["tracks"].values()) == spans and found["arrows"] == arrows
    return 0 if whole and not found["warnings"] else 1


if __name__ == "__main__":
    sys.exit(main())
