"""Check that TensorBoard's profiler shows the same DataLoader share for our trace as the profile.

The page is opened in Chromium, and a picture is saved. Its charts are drawn by a script of Google
that may not be redistributed. A stand-in prints their figures, so that no network is needed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from pipeprof.model import Profile
from pipeprof.report.trace.chrome import render_trace, tensorboard_name
from scripts.viewer_check import ROOT, chromium, real_profile
from tests.report.test_tensorboard import tensorboard, wait_until_loaded

PICTURE = ROOT / ".screens" / "tensorboard.png"
_SHARE_TEXT = "% of the step time is in DataLoader"
_CHARTS = """
class DataTable {
    rows = []
    addColumn() {} setProperty() {}
    addRows(rows) { this.rows.push(...rows) }
}
class Chart {
    constructor(place) { this.place = place }
    draw(table, { title }) {
        const text = row => row.map(cell => cell?.f ?? cell)
            .filter(cell => !`${cell}`.startsWith('<')).join('  ');
        this.place.innerText = [title ?? '', ...table.rows.slice(0, 10).map(text)].join('\\n');
    }
    clearChart() {} setSelection() {}
}
window.google = {
    charts: { load: async () => {} },
    visualization: { DataTable, Table: Chart, PieChart: Chart, SteppedAreaChart: Chart,
                     events: { addListener() {} } },
};
"""


def shown(profile: Profile) -> str:
    """Return the text of the Overview that has the DataLoader share."""
    with TemporaryDirectory() as folder:
        run = Path(folder) / "logs" / "run"
        run.mkdir(parents=True)
        (run / tensorboard_name(profile)).write_bytes(render_trace(profile, compressed=True))
        with tensorboard(run.parent) as server, sync_playwright() as playwright:
            wait_until_loaded(server)
            page = chromium(playwright).new_page(viewport={"width": 1400, "height": 1000})
            page.route("https://www.gstatic.com/charts/**", lambda route: route.fulfill(
                body=_CHARTS, content_type="text/javascript"))  # fmt: skip
            page.goto(f"{server}/#pytorch_profiler")
            text = page.frame_locator("iframe").get_by_text(_SHARE_TEXT).inner_text(timeout=60_000)
            PICTURE.parent.mkdir(exist_ok=True)
            page.screenshot(path=PICTURE)
    return text


def main() -> int:
    profile = real_profile()
    log = profile.batches
    waited_s = sum(d - a for a, d in zip(log.asked_s, log.delivered_s, strict=True))
    ours = 100 * waited_s / sum(d - a for a, d in zip(log.asked_s, log.done_s, strict=True))
    theirs = float(re.findall(rf"([0-9.]+){_SHARE_TEXT}", shown(profile))[0])
    agrees = abs(theirs - ours) < 0.1
    print(f"TensorBoard: {theirs:.1f} % in DataLoader; the profile: {ours:.1f} %: "
          f"{'equal' if agrees else 'UNEQUAL'}; picture: {PICTURE.relative_to(ROOT)}")  # fmt: skip
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
