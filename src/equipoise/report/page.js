// The page is complete without this script. With it, tables sort, code is copied, and everything
// folded away is printed.
(() => {
  "use strict";
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

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
})();
