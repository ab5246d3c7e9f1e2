// The page is complete without this script. With it, the slider moves, choices can be drawn or
// left out, tables sort, and everything folded away is printed.
(() => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const data = JSON.parse(one("#data").textContent);

  // Which choices are drawn.
  const draw = () => {
    for (const box of all("#chips input")) {
      for (const line of all(`#dots [data-choice="${box.value}"]`)) {
        line.classList.toggle("off", !box.checked);
      }
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
    const rows = all("tbody tr", table);
    const sign = down ? 1 : -1;
    rows.sort((a, b) => sign * compare(valueOf(a, column), valueOf(b, column)));
    one("tbody", table).append(...rows);
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
        `alpha ${step.alpha}: standard risk ${step.standard}, worst class ${step.worst}`,
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
  const copy = one("#copy");
  if (navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(one("#snippet").textContent);
        one("#copied").textContent = "Copied.";
      } catch {
        one("#copied").textContent = "Your browser does not allow copying: select the lines instead.";
      }
    });
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
