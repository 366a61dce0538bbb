"use strict";
(() => {
  const form = document.getElementById("filters");
  const heads = [...document.querySelectorAll("#map thead th")].slice(1);
  const rows = [...document.querySelectorAll("#map tbody tr")];
  const told = document.getElementById("told");
  const has = (element, text) => element.textContent.toLowerCase().includes(text.trim().toLowerCase());

  // A cell is shown where its row, its column and its standing are asked for; rows and columns
  // without such a cell are left out, and the other cells of those that are shown are faint.
  const filter = () => {
    const asked = form.elements;
    const inColumn = heads.map((head) => has(head, asked.task.value));
    const used = heads.map(() => 0);
    let shown = 0;
    let all = 0;
    for (const row of rows) {
      const inRow =
        (!asked.family.value || row.dataset.family === asked.family.value) &&
        has(row.firstElementChild, asked.model.value);
      let inThis = 0;
      [...row.children].slice(1).forEach((cell, column) => {
        if (!cell.dataset.standing) return;
        const isAsked = !asked.standing.value || cell.dataset.standing === asked.standing.value;
        const isShown = inRow && inColumn[column] && isAsked;
        cell.classList.toggle("off", !isShown);
        all += 1;
        inThis += isShown;
        used[column] += isShown;
      });
      row.hidden = !inThis;
      shown += inThis;
    }
    heads.forEach((head, column) => {
      head.hidden = !used[column];
      for (const row of rows) row.children[column + 1].hidden = !used[column];
    });
    document.getElementById("shown").textContent = `${shown} of ${all} cells`;
  };

  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("map").addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-standing]");
    if (!cell) return;
    told.textContent = cell.title;
    told.hidden = false;
  });
  form.hidden = false;
  filter();
})();
