"use strict";
(() => {
  const { config, charts } = JSON.parse(document.getElementById("specs").textContent);
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  // Show the meaning of a term or of a mark in a chart next to the pointer or the focus.
  function showTip(text, x, y) {
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const above = y - height - 12;
    tip.style.left = `${Math.max(16, Math.min(x, innerWidth - width - 16))}px`;
    tip.style.top = `${above > 0 ? above : y + 24}px`;
  }
  const hideTip = () => { tip.hidden = true; };

  function terms() {
    const show = (term) => {
      const { left, top } = term.getBoundingClientRect();
      const meaning = document.getElementById(term.getAttribute("aria-describedby"));
      showTip(meaning.textContent, left, top);
    };
    for (const term of document.querySelectorAll("a.term")) {
      term.addEventListener("mouseenter", () => show(term));
      term.addEventListener("focus", () => show(term));
      term.addEventListener("mouseleave", hideTip);
      term.addEventListener("blur", hideTip);
    }
    addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
    addEventListener("scroll", () => {
      if (tip.hidden) return;
      const term = document.activeElement.closest("a.term"); // focusing it caused the scroll
      if (term) show(term);
      else hideTip();
    }, { passive: true, capture: true });
  }

  function draw(holder) {
    const spec = charts[holder.dataset.chart];
    const view = new vega.View(vega.parse(vegaLite.compile(spec, { config }).spec), {
      renderer: "svg",
      hover: false,
    });
    view.tooltip((_, event, item, value) => {
      if (value === null || value === undefined) hideTip();
      else showTip(String(value), event.clientX, event.clientY);
    });
    view.initialize(holder).run();
    const svg = holder.querySelector("svg");
    svg.setAttribute("aria-hidden", "true"); // the label of its holder describes it
    if (holder.classList.contains("zoomable")) zoomable(holder, view);
  }

  // Let the user zoom by buttons, by keys on the chart, and by dragging.
  function zoomable(holder, view) {
    const whole = view.signal("whole");
    const least = whole / 200;
    const set = (from, length) => {
      const kept = Math.min(Math.max(length, least), whole);
      const start = Math.min(Math.max(from, 0), whole - kept);
      view.signal("from", start).signal("to", start + kept).run();
    };
    const act = (action) => {
      const from = view.signal("from");
      const length = view.signal("to") - from;
      if (action === "in") set(from + length / 4, length / 2);
      else if (action === "out") set(from - length / 2, length * 2);
      else if (action === "left") set(from - length / 4, length);
      else if (action === "right") set(from + length / 4, length);
      else set(0, whole);
    };
    const keys = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", Home: "all" };
    holder.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || !(event.key in keys)) return;
      event.preventDefault();
      act(keys[event.key]);
    });
    for (const button of holder.parentElement.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => act(button.dataset.zoom));
    }
    let last = null;
    holder.addEventListener("pointerdown", (event) => { last = event.clientX; });
    addEventListener("pointerup", () => { last = null; });
    addEventListener("pointermove", (event) => {
      if (last === null) return;
      const from = view.signal("from");
      const length = view.signal("to") - from;
      set(from - ((event.clientX - last) / holder.clientWidth) * length, length);
      last = event.clientX;
    });
  }

  function sortable(table) {
    const titles = [...table.tHead.rows[0].cells];
    const rows = [...table.tBodies[0].rows];
    const value = (row, column) => {
      const cell = row.cells[column];
      return cell.dataset.sort === undefined ? cell.textContent : Number(cell.dataset.sort);
    };
    titles.forEach((title, column) => {
      const button = title.querySelector("button");
      if (!button) return;
      button.addEventListener("click", () => {
        // numbers sort descending first, names ascending
        const figures = rows.some((row) => typeof value(row, column) === "number");
        const was = title.getAttribute("aria-sort");
        const falling = was ? was === "ascending" : figures;
        titles.forEach((each) => each.removeAttribute("aria-sort"));
        title.setAttribute("aria-sort", falling ? "descending" : "ascending");
        const sorted = [...rows].sort((a, b) => {
          const [one, other] = [value(a, column), value(b, column)];
          if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1; // unknown last
          const order = typeof one === "number" ? one - other : one.localeCompare(other);
          return falling && (typeof one === "number" || !figures) ? -order : order;
        });
        table.tBodies[0].append(...sorted);
      });
    });
  }

  function copying(button) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
    });
  }

  function theme() {
    document.getElementById("theme").addEventListener("click", () => {
      const dark = root.dataset.theme
        ? root.dataset.theme === "dark"
        : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  theme();
  terms();
  document.querySelectorAll(".sortable").forEach(sortable);
  document.querySelectorAll(".copy").forEach(copying);
  document.querySelectorAll("[data-chart]").forEach(draw);
  root.dataset.ready = String(Math.round(performance.now()));
})();
