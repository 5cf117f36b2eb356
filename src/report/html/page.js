"use strict";

const said = document.getElementById("said");

for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
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
}

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
const age = document.getElementById("age");
const tell = () => {
  const minutes = Math.floor((Date.now() - Date.parse(document.body.dataset.judged)) / MINUTE);
  const [count, unit] = minutes < 120 ? [minutes, "minute"] : minutes < 2880 ? [Math.floor(minutes / 60), "hour"] : [Math.floor(minutes / 1440), "day"];
  age.hidden = minutes < 1;
  age.textContent = `That was ${count} ${unit}${count === 1 ? "" : "s"} ago; times left are as of then.`;
};
tell();
setInterval(tell, MINUTE);
