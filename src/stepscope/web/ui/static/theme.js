"use strict";
// Runs before anything is drawn: sets the theme and the language of the text, and keeps it and the language for the next page.
(() => {
  const own = document.currentScript.dataset;
  document.documentElement.lang = own.spoken;
  const [schemeCookie, languageCookie] = own.cookies.split(" ");
  const keep = (name, value) => { document.cookie = `${name}=${value}; path=/; max-age=31536000; SameSite=Strict`; };
  const cookie = (name) => (document.cookie.split("; ").find((each) => each.startsWith(`${name}=`)) || "").split("=")[1];
  const system = matchMedia("(prefers-color-scheme: dark)");
  let kept = null;
  try { kept = localStorage.getItem("stepscope-theme"); } catch { /* not kept */ }
  if (own.theme) {
    kept = own.theme === "auto" ? null : own.theme;
    try { if (kept) localStorage.setItem("stepscope-theme", kept); else localStorage.removeItem("stepscope-theme"); } catch { /* not kept */ }
  }
  if (kept) document.documentElement.dataset.theme = kept;
  const scheme = kept || (system.matches ? "dark" : "light");
  const drawnFor = own.theme === "dark" || own.theme === "light" ? own.theme : cookie(schemeCookie) || "light";
  keep(schemeCookie, scheme);
  if (own.lang) keep(languageCookie, own.lang);
  // Figures come in the colours of the theme that the server knows: once, it has to be told.
  if (scheme !== drawnFor && cookie(schemeCookie) === scheme) location.reload();
})();
