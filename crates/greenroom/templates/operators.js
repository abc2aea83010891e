// Fetches the page again every two seconds, and changes what differs. Focus, scroll and an open
// explanation stay, since elements do.
"use strict";

const STEP_MILLIS = 2000;
const TIMEOUT_MILLIS = 10000;
// On a term whose explanation is not to be shown: the reader's, and not of the page that is fetched.
const DISMISSED = "data-dismissed";
const parser = new DOMParser();
const fresh = document.getElementById("fresh");
const pause = document.getElementById("pause");
let isPaused = false;

function isAlike(old, next) {
  return old.nodeType === next.nodeType && old.nodeName === next.nodeName && old.id === next.id;
}

function adopt(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== next.nodeValue) old.nodeValue = next.nodeValue;
    return;
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && name !== DISMISSED) old.removeAttribute(name);
  }
  adoptChildren(old, next);
}

function adoptChildren(old, next) {
  const news = [...next.childNodes];
  news.forEach((child, index) => {
    const present = old.childNodes[index];
    if (!present) old.append(document.importNode(child, true));
    else if (isAlike(present, child)) adopt(present, child);
    else present.replaceWith(document.importNode(child, true));
  });
  while (old.childNodes.length > news.length) old.lastChild.remove();
}

async function refresh() {
  const signal = AbortSignal.timeout(TIMEOUT_MILLIS);
  const response = await fetch("/", { signal, cache: "no-store" });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const next = parser.parseFromString(await response.text(), "text/html");
  // Somebody may have pressed the button while the response was under way.
  if (isPaused) return;
  for (const selector of ["#state", "nav", "main"]) {
    adopt(document.querySelector(selector), next.querySelector(selector));
  }
  document.title = next.title;
}

function say(text) {
  // It is read aloud when it changes.
  if (fresh.textContent !== text) fresh.textContent = text;
}

function sayUnlessPaused(text) {
  if (!isPaused) say(text);
}

async function turn() {
  if (!isPaused && !document.hidden) {
    try {
      await refresh();
      document.body.classList.remove("stale");
      sayUnlessPaused("Live: every two seconds.");
    } catch (error) {
      document.body.classList.add("stale");
      sayUnlessPaused("The server does not respond: these numbers are old. Trying again.");
    }
  }
  setTimeout(turn, STEP_MILLIS);
}

pause.hidden = false;
pause.addEventListener("click", () => {
  isPaused = !isPaused;
  pause.setAttribute("aria-pressed", String(isPaused));
  say(isPaused ? "Paused." : "Live: every two seconds.");
});

// An explanation that is in the way goes by Escape, until its term is left.
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const term of document.querySelectorAll(".term:hover, .term:focus-within")) {
    term.setAttribute(DISMISSED, "");
    const back = () => term.removeAttribute(DISMISSED);
    term.addEventListener("mouseleave", back, { once: true });
    term.addEventListener("focusout", back, { once: true });
  }
});

say("Live: every two seconds.");
setTimeout(turn, STEP_MILLIS);
