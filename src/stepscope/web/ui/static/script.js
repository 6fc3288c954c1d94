"use strict";
// Links and forms that change what is shown without leaving the page, saving figures as pictures, and what holds the
// reader's place meanwhile. Without it, or without the websocket, links and forms are those of any page.
window.stepscope = (() => {
  const isHere = (url) => url.origin === location.origin && url.pathname === location.pathname;

  const go = (address) => {
    const url = new URL(address, location.href);
    if (!isHere(url) || !window.socket || !window.socket.connected || typeof emitEvent !== "function") {
      location.assign(url);
      return;
    }
    const target = url.pathname + url.search, before = new URLSearchParams(location.search);
    if (target !== location.pathname + location.search) history.pushState({}, "", target + url.hash);
    if (url.hash) showing = false;
    follow(before);
    emitEvent("stepscope_go", target);
  };

  // What other parts of the page show stays when a link or form of one of them is followed: what they do not change
  // themselves has the new value from now on.
  const follow = (before) => {
    const now = new URLSearchParams(location.search);
    const changed = [...new Set([...before.keys(), ...now.keys()])].filter((name) => before.get(name) !== now.get(name));
    const carry = (values) => {
      for (const name of changed) {
        if (values.get(name) !== before.get(name)) continue;
        if (now.has(name)) values.set(name, now.get(name)); else values.delete(name);
      }
    };
    for (const link of document.querySelectorAll("a[data-go], .choices a")) {
      const url = new URL(link.href);
      if (!isHere(url)) continue;
      carry(url.searchParams);
      link.href = url.href;
    }
    // Links to other pages of the run take ranks and steps along.
    for (const list of document.querySelectorAll("[data-carried]")) {
      const carried = changed.filter((name) => list.dataset.carried.split(" ").includes(name));
      for (const link of list.querySelectorAll("a")) {
        const url = new URL(link.href);
        for (const name of carried) {
          if (now.has(name)) url.searchParams.set(name, now.get(name)); else url.searchParams.delete(name);
        }
        link.href = url.href;
      }
      const rank = list.querySelector("[name=rank]");
      if (rank && carried.includes("rank")) rank.value = now.get("rank") ?? "";
    }
    for (const form of document.querySelectorAll("form[data-go]")) {
      for (const name of changed) {
        const fields = [...form.elements].filter((field) => field.name === name);
        if (fields.some((field) => field.type !== "hidden")) continue;
        for (const field of fields) field.remove();
        if (now.has(name)) form.prepend(Object.assign(document.createElement("input"), { type: "hidden", name, value: now.get(name) }));
      }
    }
  };

  const asked = (form) => {
    const url = new URL(form.getAttribute("action") || location.pathname, location.href);
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (typeof value === "string" && value.trim()) values.append(name, value.trim());
    url.search = values.toString();
    return url.href;
  };

  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a[data-go]") : null;
    if (!link) return;
    event.preventDefault();
    go(link.href);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!(form instanceof HTMLFormElement) || !form.matches("form[data-go]")) return;
    event.preventDefault();
    go(asked(form));
  });
  document.addEventListener("change", (event) => {
    const field = event.target;
    if (!(field instanceof Element) || !field.matches("form[data-go] select, form[data-go] input[type=checkbox]")) return;
    go(asked(field.form));
  });
  document.addEventListener("keydown", (event) => {
    const field = event.target;
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !(field instanceof Element) || !field.matches("textarea[data-enter]")) return;
    event.preventDefault();
    field.form.requestSubmit();
  });
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-insert], [data-post], [data-picture]") : null;
    if (!button) return;
    if (button.dataset.picture) picture(button.dataset.figure, button.dataset.picture, button.dataset.file);
    else if (button.dataset.post) save(button);
    else {
      const field = document.getElementById(button.dataset.into);
      field.setRangeText(button.dataset.insert, field.selectionStart, field.selectionEnd, "end");
      field.focus();
    }
  });

  // A file that answers what is sent: a link can only ask with its address.
  const save = async (button) => {
    const said = document.getElementById("post-problem");
    button.disabled = true;
    try {
      const answer = await fetch(button.dataset.post, { method: "POST", headers: { "Content-Type": "application/json" }, body: button.dataset.body });
      if (!answer.ok) throw new Error((await answer.json()).detail || answer.statusText);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await answer.blob());
      link.download = button.dataset.file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      if (said) said.textContent = "";
    } catch (error) {
      if (said) said.textContent = error.message;
    }
    button.disabled = false;
  };

  addEventListener("popstate", (event) => { if (event.state !== null || !location.hash) location.reload(); });

  // A panel that is filled again loses the focus of what is inside: the element of the same id gets it back.
  let focused = null, opened = new Set();
  document.addEventListener("focusin", (event) => { focused = event.target.id || null; });
  document.addEventListener("toggle", (event) => {
    const identity = event.target.id;
    if (identity) (event.target.open ? opened.add(identity) : opened.delete(identity));
  }, true);
  let showing = false;
  const settle = () => {
    if (window.stepscopeParts) window.stepscopeParts.copyButtons(document);
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
    // What is wrong with a choice of the whole page is said once, not by each of its parts.
    const told = new Set();
    for (const one of document.querySelectorAll(".panel > div > p.empty:only-child, .panel > p.empty:only-child")) {
      one.closest(".panel").hidden = told.has(one.textContent);
      told.add(one.textContent);
    }
    // What follows # may come later than the page itself.
    if (!showing && location.hash.length > 1) {
      const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (target) { showing = true; open(target); }
    }
  };
  const open = (target) => {
    for (let each = target; each; each = each.parentElement) if (each instanceof HTMLDetailsElement) each.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) open(target);
  });
  let waiting = 0;
  new MutationObserver(() => {
    if (waiting) return;
    waiting = requestAnimationFrame(() => { waiting = 0; settle(); });
  }).observe(document.body, { childList: true, subtree: true });

  const picture = (figure, format, filename) => {
    const plot = document.querySelector(`#drawn-${CSS.escape(figure)} .js-plotly-plot`);
    if (!plot) return;
    import("nicegui-plotly").then(({ Plotly }) => {
      Plotly.downloadImage(plot, { format, filename, width: plot.clientWidth, height: plot.clientHeight, scale: format === "png" ? 2 : 1 });
    });
  };
  settle();
  // Parts of a panel that change often are replaced by themselves, so that what is being pointed at stays.
  const replace = (parts) => {
    for (const [identity, html] of Object.entries(parts)) {
      const element = document.getElementById(identity);
      if (element) element.outerHTML = html;
    }
  };
  return { go, replace };
})();
