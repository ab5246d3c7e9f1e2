// The page is complete without this script. With it, the slider moves, choices can be drawn or
// left out, tables sort, and everything folded away is printed.
(() => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(one("#data").textContent);

  // Which choices are drawn, on an axis that holds them.
  const draw = () => {
    const drawn = new Set(all("#chips input:checked").map((box) => box.value));
    const lines = all("#dots [data-choice]");
    for (const line of lines) line.classList.toggle("off", !drawn.has(line.dataset.choice));
    const places = (line) => one(".track", line).dataset.at.split(" ").map(Number);
    const shown = lines.filter((line) => drawn.has(line.dataset.choice));
    if (!shown.length) return;
    const most = Math.max(...shown.map((line) => places(line)[2]));
    const axis = data.axes.find((each) => most <= each.top) ?? data.axes.at(-1);
    one("#dots").className = `dots g${axis.steps}`;
    one("#dots .ticks").replaceChildren(...axis.ticks.map((tick) => {
      const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
      text.setAttribute("x", `${tick.at}%`);
      text.setAttribute("y", "12");
      text.textContent = tick.text;
      return text;
    }));
    for (const line of shown) {
      const [lower, risk, upper] = places(line).map((each) => (100 * each) / axis.top);
      one(".ends", line).setAttribute("x", `${lower}%`);
      one(".ends", line).setAttribute("width", `${upper - lower}%`);
      one("use", line).setAttribute("x", `${risk}%`);
      one(".core", line)?.setAttribute("cx", `${risk}%`);
    }
  };
  one("#chips").addEventListener("change", draw);

  // Risk or regret.
  const showCosts = () => {
    const kind = one("#cost-kind input:checked").value;
    for (const cell of all("#cost-table td[data-risk]")) {
      cell.textContent = cell.dataset[kind];
      cell.dataset.value = cell.dataset[`${kind}Value`];
      cell.className = cell.className.replace(/heat\d/, `heat${cell.dataset[`${kind}Shade`]}`);
    }
  };
  one("#cost-kind").addEventListener("change", showCosts);

  // Sorting: a button in every header, by value where there is one and by text otherwise.
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
  const sort = (table, header) => {
    const down = header.getAttribute("aria-sort") !== "ascending";
    for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "ascending" : "descending");
    const column = header.cellIndex;
    const rows = all("tbody tr:not(.model)", table);
    const sign = down ? 1 : -1;
    rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
    one("tbody", table).append(...rows);
    // Rows that were grouped by model say it themselves.
    table.classList.add("flat");
  };
  for (const table of all("table.sortable")) {
    for (const header of all("thead th", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, header));
    }
  }

  // The slider.
  const slider = one("#alpha");
  if (slider && data.path) {
    const path = data.path;
    const lines = all("#bars li");
    const text = (id, value) => { one(id).textContent = value; };
    const move = () => {
      const at = Number(slider.value);
      const step = path.steps[at];
      text("#alpha-value", step.alpha);
      text("#now-cap", step.cap);
      text("#now-free", step.free ? ", which binds nowhere any more: the worst class decides" : "");
      text("#now-standard", step.standard);
      text("#now-balanced", step.balanced);
      text("#now-worst", step.worst);
      text("#now-worst-class", step.worst_class);
      slider.setAttribute(
        "aria-valuetext",
        `alpha ${step.alpha}: ${step.standard} of all rows wrong, ${step.worst} in the worst class`,
      );
      path.bars.forEach((bar, place) => {
        const line = lines[place];
        one(".fill", line).setAttribute("width", `${bar.risk[at]}%`);
        const ends = one(".ends", line);
        ends.setAttribute("x", `${bar.from[at]}%`);
        ends.setAttribute("width", `${bar.to[at] - bar.from[at]}%`);
        one(".value", line).textContent = bar.text[at];
        one(".times", line).textContent = bar.weight[at];
      });
      const here = one("#here");
      here.setAttribute("cx", `${path.dots[at][0]}%`);
      here.setAttribute("cy", `${path.dots[at][1]}%`);
    };
    slider.addEventListener("input", move);
    // A browser that comes back to the page may keep the slider where it was.
    move();
  }

  // Copying, where the browser allows it.
  for (const copy of navigator.clipboard ? all(".copy") : []) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(one(`#${copy.dataset.of}`).textContent);
        one("#copied").textContent = "Copied.";
      } catch {
        one("#copied").textContent = "Your browser does not allow copying: select the lines instead.";
      }
    });
  }

  // What is wider than its place says so, and fades where it goes on.
  const cue = (box) => {
    const hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("scrolls", hidden > 2);
    box.classList.toggle("cut", hidden - box.scrollLeft > 2);
  };
  const seen = new ResizeObserver((entries) => entries.forEach((entry) => cue(entry.target)));
  for (const box of all(".scroll")) {
    seen.observe(box);
    box.addEventListener("scroll", () => cue(box), { passive: true });
  }

  // On paper nothing is folded away.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });

  // A browser may keep the state of boxes and buttons too.
  draw();
  showCosts();
})();
