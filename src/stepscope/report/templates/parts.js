"use strict";
// What every page with parts of a report needs: what columns mean, and buttons that copy. The web application, whose
// parts come later, calls `stepscopeParts.copyButtons` for them.
window.stepscopeParts = (() => {
  const words = document.getElementById("words").dataset;
  const tip = document.getElementById("tip");

  // What a column means, on hover and focus.
  const open = (target) => {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const box = target.getBoundingClientRect();
    const left = Math.min(Math.max(8, box.left), innerWidth - tip.offsetWidth - 8);
    const above = box.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${above > 4 ? above : box.bottom + 6}px`;
  };
  for (const name of ["mouseover", "focusin"]) {
    document.addEventListener(name, (event) => {
      const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
      if (target) open(target); else tip.hidden = true;
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
  document.addEventListener("focusout", () => { tip.hidden = true; });

  // What is to be copied.
  const copyButtons = (within) => {
    for (const code of within.querySelectorAll("code.copied:not([data-ready])")) {
      code.dataset.ready = "1";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = words.copy;
      button.addEventListener("click", async () => {
        getSelection().selectAllChildren(code);
        try { await navigator.clipboard.writeText(code.textContent); } catch { document.execCommand("copy"); }
        button.textContent = words.copied;
        setTimeout(() => { button.textContent = words.copy; }, 1500);
      });
      code.after(button);
    }
  };
  copyButtons(document);
  return { copyButtons };
})();
