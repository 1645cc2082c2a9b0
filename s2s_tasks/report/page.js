"use strict";

// Tables sort by a click on a heading, or by Enter or Space on it: upwards, downwards, as written.
const collator = new Intl.Collator(undefined, { numeric: true });

function compare(one, other) {
  if ("value" in one.dataset && "value" in other.dataset) {
    return one.dataset.value - other.dataset.value;
  }
  return collator.compare(one.textContent, other.textContent);
}

function isMissing(cell) {
  return cell.classList.contains("number") && !("value" in cell.dataset);
}

function sorted(rows, column, sign) {
  return rows.toSorted((one, other) => {
    const [a, b] = [one.cells[column], other.cells[column]];
    // What is missing comes last in either direction.
    return isMissing(a) - isMissing(b) || (isMissing(a) ? 0 : sign * compare(a, b));
  });
}

function makeSortable(table) {
  const [body] = table.tBodies;
  const written = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "none" };
      const order = next[heading.ariaSort] ?? "ascending";
      headings.forEach((each) => each.removeAttribute("aria-sort"));
      if (order !== "none") heading.setAttribute("aria-sort", order);
      const sign = { ascending: 1, descending: -1 }[order];
      body.append(...(sign ? sorted(written, column, sign) : written));
    });
  });
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length > 1) makeSortable(table);
}

// One recording at a time.
document.addEventListener(
  "play",
  ({ target }) => {
    for (const player of document.querySelectorAll("audio")) {
      if (player !== target) player.pause();
    }
  },
  true,
);
