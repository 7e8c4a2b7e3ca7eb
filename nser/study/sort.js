// A click on a head sorts by that column, a second click the other way round. Rows that are equal keep their order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const [left, right] = [a, b].map((row) => row.cells[column].dataset.order);
      const numbers = [left, right].map((text) => (text === "inf" ? Infinity : Number(text)));
      const order = numbers.some(Number.isNaN) ? left.localeCompare(right) : numbers[0] < numbers[1] ? -1 : numbers[0] > numbers[1];
      return down ? -order : +order;
    });
    body.append(...rows);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  }));
}
