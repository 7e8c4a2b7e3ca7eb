// Every table with an id can be sorted by a click (or Enter) on a head, and filtered by words and by values of the
// columns that are marked for it. Without scripts the tables stand as they are.
"use strict";

const figure = (text) => (text === "inf" ? Infinity : Number(text));

// Numbers in their order, texts by the alphabet, what is unknown last in either direction.
function compare(left, right, down) {
  if (left === undefined || right === undefined) return (left === undefined) - (right === undefined);
  const [a, b] = [figure(left), figure(right)];
  const order = Number.isNaN(a) || Number.isNaN(b) ? left.localeCompare(right) : (a > b) - (a < b);
  return down ? -order : order;
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      // Of figures the large ones are wanted first.
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : head.classList.contains("n");
      const order = (row) => row.cells[column].dataset.order;
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => compare(order(a), order(b), down)));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
}

function labelled(text, control) {
  const label = document.createElement("label");
  label.append(text, control);
  return label;
}

function chooser(table, column, name) {
  const select = document.createElement("select");
  const cells = [...table.tBodies[0].rows].map((row) => row.cells[column]);
  const texts = new Map(cells.map((cell) => [cell.dataset.order ?? "", cell.textContent.trim()]));
  select.add(new Option("all", "*"));
  [...texts.keys()].sort((a, b) => compare(a, b, false))
    .forEach((value) => select.add(new Option(value && texts.get(value) || "none", value)));
  return { column, select, label: labelled(name, select) };
}

function makeFilterable(table) {
  const words = document.createElement("input");
  words.type = "search";
  words.placeholder = "words, all of them";
  const count = document.createElement("output");
  const choosers = [...table.tHead.rows[0].cells]
    .map((head, column) => (head.dataset.choose === undefined ? null : chooser(table, column, head.textContent.trim())))
    .filter(Boolean);
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: row.textContent.toLowerCase() }));
  const filter = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const { row, text } of rows) {
      const chosen = choosers.every(({ column, select }) =>
        select.value === "*" || (row.cells[column].dataset.order ?? "") === select.value);
      row.hidden = !(chosen && wanted.every((word) => text.includes(word)));
    }
    const shown = rows.filter(({ row }) => !row.hidden).length;
    count.textContent = `${shown} of ${rows.length} ${table.dataset.what}`;
  };
  const tools = document.createElement("div");
  tools.className = "tools";
  tools.append(labelled("filter", words), ...choosers.map(({ label }) => label), count);
  tools.addEventListener("input", filter);
  table.closest(".sheet").prepend(tools);
  filter();
  return () => {
    words.value = "";
    choosers.forEach(({ select }) => { select.value = "*"; });
    filter();
  };
}

for (const table of document.querySelectorAll("table[id]")) {
  const showAll = makeFilterable(table);
  makeSortable(table);
  // A link to a row that is filtered out shows it again.
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && table.contains(target) && target.hidden) {
      showAll();
      target.scrollIntoView();
    }
  });
}
