"use strict";
(() => {
  const words = document.getElementById("words").dataset;
  const root = document.documentElement;

  // Light and dark.
  const theme = document.getElementById("theme");
  const kept = () => { try { return localStorage.getItem("stepscope-theme"); } catch { return null; } };
  const show = (name) => { if (name) root.dataset.theme = name; else delete root.dataset.theme; };
  show(location.hash === "#dark" ? "dark" : kept());
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const name = dark ? "light" : "dark";
    show(name);
    try { localStorage.setItem("stepscope-theme", name); } catch { /* not kept */ }
  });

  // Sorting: numbers by their value, texts by their words; a second click turns the order around.
  const valueOf = (cell, number) => {
    if (!number) return cell.textContent;
    return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
  };
  const sort = (table, place, number, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [valueOf(row.cells[place], number), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      const order = number ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return down ? -order : order;
    });
    body.append(...rows.map(([, row]) => row));
  };
  for (const table of document.querySelectorAll("figure.table table, table.overview, table.texts")) {
    const heads = [...table.tHead.rows[0].cells];
    const docs = table.closest("figure")?.querySelectorAll(".columns dd") ?? [];
    heads.forEach((head, place) => {
      const number = head.classList.contains("n");
      // Not a button element: browsers leave those out where they repeat a head on the next printed page.
      const button = document.createElement("span");
      button.className = "sort";
      button.tabIndex = 0;
      button.setAttribute("role", "button");
      button.append(...head.childNodes);
      const doc = docs[place]?.textContent;
      if (doc) button.dataset.tip = doc;
      button.setAttribute("aria-label", `${button.textContent}. ${doc ?? ""} ${words.sort}`);
      head.append(button);
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        button.click();
      });
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        const down = now ? now === "ascending" : number;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sort(table, place, number, down);
      });
    });
    const caption = table.closest("figure")?.querySelector("figcaption");
    if (!caption || table.tBodies[0].rows.length < 6) continue;
    const input = document.createElement("input");
    input.type = "search";
    input.placeholder = words.filter;
    input.setAttribute("aria-label", words.filter);
    const count = caption.querySelector(".count");
    const all = count.textContent;
    input.addEventListener("input", () => {
      const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        left += !row.hidden;
      }
      count.textContent = wanted.length ? `${left} ${words.of} ${all}` : all;
    });
    caption.append(input);
  }

  // Print how findings are computed; their evidence and the tables of figures if they were opened.
  const folded = "details:not(.columns):not(.evidence):not(.ss-table)";
  addEventListener("beforeprint", () => { for (const each of document.querySelectorAll(folded)) each.open = true; });
})();
