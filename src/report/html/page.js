"use strict";

const said = document.getElementById("said");
const data = document.body.dataset;

const showButtons = () => {
  for (const button of document.querySelectorAll("button.copy")) button.hidden = false;
};
showButtons();
addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(code.textContent);
    said.textContent = button.textContent = "Copied";
  } catch {
    // Where the browser keeps the clipboard to itself, the command is at least selected.
    getSelection().selectAllChildren(code);
    said.textContent = button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

// What is folded is printed too.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of folded) details.open = false;
});

// Whoever opens the page later should know that it has not changed since.
const MINUTE = 60000;
const minutesOld = () => Math.floor((Date.now() - Date.parse(data.judged)) / MINUTE);
const tell = () => {
  const minutes = minutesOld();
  const [count, unit] = minutes < 120 ? [minutes, "minute"] : minutes < 2880 ? [Math.floor(minutes / 60), "hour"] : [Math.floor(minutes / 1440), "day"];
  const age = document.getElementById("age");
  age.hidden = minutes < 1;
  age.textContent = `That was ${count} ${unit}${count === 1 ? "" : "s"} ago; times left are as of then.`;
};
tell();
setInterval(tell, MINUTE);

// A page that is served is fetched anew when it has another revision, and each minute, since times go on: while it is
// looked at. Where the reader is in it stays: the same place is told by its incident, since their order changes.
const places = () => {
  const count = {}, named = new Map();
  for (const place of document.querySelectorAll("main :is(a, button, summary)")) {
    const kind = `${place.tagName} of ${place.closest("article")?.dataset.incident}`;
    count[kind] = (count[kind] ?? 0) + 1;
    named.set(`${kind} ${count[kind]}`, place);
  }
  return named;
};
const incidents = () => [...document.querySelectorAll("article")];

const renew = async () => {
  const answer = await fetch("./");
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const madeBy = (page) => page.querySelector("meta[name=generator]").content;
  if (madeBy(next) !== madeBy(document)) return location.reload();

  const before = [...places()];
  const folding = before.filter(([, place]) => place.tagName === "SUMMARY").map(([name, place]) => [name, place.parentElement.open]);
  const focused = before.find(([, place]) => place === document.activeElement)?.[0];
  const seen = incidents().find((incident) => incident.getBoundingClientRect().bottom > 0);
  const top = seen?.getBoundingClientRect().top;

  if (next.title !== document.title) said.textContent = document.title = next.title;
  for (const part of ["header.page", "main"]) document.querySelector(part).replaceWith(next.querySelector(part));
  Object.assign(data, next.body.dataset);
  showButtons();
  tell();

  const after = places();
  for (const [name, open] of folding) if (after.has(name)) after.get(name).parentElement.open = open;
  after.get(focused)?.focus({ preventScroll: true });
  const same = scrollY > 0 && incidents().find((incident) => incident.dataset.incident === seen?.dataset.incident);
  if (same) scrollBy(0, same.getBoundingClientRect().top - top);
};

if (data.revision) {
  let newest = data.revision;
  let renewed = Promise.resolve();
  const look = () => {
    renewed = renewed.then(async () => {
      if (!document.hidden && (newest !== data.revision || minutesOld() >= 1)) await renew();
    }).catch(() => {});
  };
  new EventSource("changes").onmessage = (event) => { newest = event.data; look(); };
  addEventListener("visibilitychange", look);
  setInterval(look, MINUTE);
}
