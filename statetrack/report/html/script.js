"use strict";
(() => {
  const drawer = document.getElementById("drawer");
  const content = drawer.querySelector(".content");
  const title = document.getElementById("drawer-title");
  let home = null;
  let opener = null;

  // The text of a run stands once in the page: it is moved into the drawer and back.
  const putBack = () => {
    if (home) home.append(content.firstElementChild);
    home = null;
  };

  const show = (number, from) => {
    const run = document.querySelector(`details.run[data-number="${number}"]`);
    if (!run || !drawer.showModal) return false;
    putBack();
    home = run;
    opener = from;
    title.textContent = run.querySelector(".name").dataset.title;
    content.append(run.querySelector(".body"));
    if (!drawer.open) drawer.showModal();
    content.scrollTop = 0;
    title.focus();
    return true;
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-run]");
    const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
    if (link && isPlain && show(link.dataset.run, link)) event.preventDefault();
    if (event.target === drawer || event.target.closest("dialog .close")) drawer.close();
    const copy = event.target.closest("button.copy");
    if (copy) copyText(copy);
    const download = event.target.closest("button[data-as]");
    if (download) save(download.dataset.as);
  });

  drawer.addEventListener("close", () => {
    putBack();
    if (opener) opener.focus();
    opener = null;
  });
  addEventListener("beforeprint", () => drawer.open && drawer.close());

  const copyText = async (button) => {
    const text = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  };

  // What is wider than the screen says so, until its end is seen.
  const scrollers = new Map();
  for (const scroller of document.querySelectorAll(".scroller")) {
    const cue = document.createElement("p");
    cue.className = "cue";
    cue.hidden = true;
    cue.setAttribute("aria-hidden", "true");
    cue.textContent = "more to the right: scroll →";
    scroller.after(cue);
    scrollers.set(scroller, cue);
    scroller.addEventListener("scroll", () => tell(scroller), { passive: true });
  }
  const tell = (scroller) => {
    const left = scroller.scrollWidth - scroller.clientWidth - scroller.scrollLeft;
    scroller.classList.toggle("more", left > 4);
    scrollers.get(scroller).hidden = left <= 4;
  };
  const tellAll = () => scrollers.forEach((cue, scroller) => tell(scroller));
  addEventListener("resize", tellAll);
  document.addEventListener("toggle", tellAll, true);
  tellAll();

  const rowData = () => JSON.parse(document.getElementById("row-data").textContent);

  // Every entry with the scores of every replica.
  const asJson = () => {
    const data = rowData();
    const named = (names, values) => Object.fromEntries(names.map((name, i) => [name, values[i]]));
    const entries = data.entries.map((values) => ({ ...named(data.entry_fields, values), rows: [] }));
    for (const [number, score, ...replica] of data.rows) {
      entries[number].rows.push({
        ...named(data.replica_fields, replica),
        ...named(data.score_fields, data.scores[score]),
      });
    }
    return JSON.stringify({ title: data.title, entries }, null, 1) + "\n";
  };

  // One line for each run and length.
  const asCsv = () => {
    const { columns, once, runs } = rowData().long;
    const text = (value) => {
      const plain = value === null ? "" : String(value);
      return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
    };
    const lines = [columns];
    for (const [common, own] of runs) {
      for (const values of own) {
        const [of, and] = [common.values(), values.values()];
        lines.push(columns.map((_, n) => (once.includes(n) ? of : and).next().value));
      }
    }
    return lines.map((line) => line.map(text).join(",")).join("\n") + "\n";
  };

  const save = (kind) => {
    const [make, type] = kind === "csv" ? [asCsv, "text/csv"] : [asJson, "application/json"];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([make()], { type: `${type};charset=utf-8` }));
    link.download = `${document.querySelector(".downloads").dataset.name}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  for (const hidden of document.querySelectorAll(".downloads, button.copy")) hidden.hidden = false;
  const asked = /^#run-(\d+)$/.exec(location.hash);
  if (asked) show(asked[1], null);
})();
