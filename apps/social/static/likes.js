// Likes are shown at once, and taken back if the server refuses.
import { call, me } from "./api.js";
import { setAhead, setCount } from "./counts.js";
import { notice } from "./notice.js";

// To like twice is to like once, so what was refused for a moment is simply asked again.
const TRIES = 4;
const WAIT_MOST = 10;

export function improveLikes() {
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-like]")) return;
    event.preventDefault();
    toggle(event.target);
  });
  document.addEventListener("counted", ({ target, detail }) => {
    const form = target.closest("form[data-like]");
    if (form && detail.body.by === me) confirm(form, detail.body.liked);
  });
}

async function toggle(form) {
  const button = form.querySelector("button");
  const wanted = button.getAttribute("aria-pressed") !== "true";
  show(form, wanted, true);
  // The last click wins: who clicks while a request is under way has it followed by another.
  form.wanted = wanted;
  if ("waiting" in form.dataset) return;
  form.dataset.waiting = "";
  try {
    while (form.wanted !== undefined) {
      const liked = form.wanted;
      const view = await ask(form.dataset.like, liked);
      if (form.wanted !== liked) continue;
      form.wanted = undefined;
      show(form, view.liked, false);
      setCount(form.querySelector("[data-count]"), view.likes, view.likes_seq);
    }
  } catch (rejection) {
    form.wanted = undefined;
    takeBack(form, rejection);
  } finally {
    delete form.dataset.waiting;
  }
}

async function ask(picture, liked) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call(liked ? "PUT" : "DELETE", `/api/pictures/${picture}/like`);
    } catch (rejection) {
      const wait = rejection.retryAfter;
      const isPassing = [429, 503].includes(rejection.status) && wait !== null && wait <= WAIT_MOST;
      if (!isPassing || tries === TRIES) throw rejection;
      if (tries === 1) notice(`The server is busy; your like is tried again in ${wait} s.`);
      await new Promise((done) => setTimeout(done, wait * 1000));
    }
  }
}

// Beside what is certain, a like of one's own that is not confirmed is one more, or one less.
function show(form, liked, isAhead) {
  const button = form.querySelector("button");
  const shown = form.querySelector("[data-count]");
  form.certain ??= button.getAttribute("aria-pressed") === "true";
  if (!isAhead) form.certain = liked;
  button.setAttribute("aria-pressed", String(liked));
  form.elements.liked.value = String(!liked);
  setAhead(shown, Number(liked) - Number(form.certain));
}

function takeBack(form, rejection) {
  show(form, form.certain, false);
  if (rejection.status === 404 || rejection.status === 409) {
    form.closest(".card")?.remove();
    notice("This picture is no longer there.");
  } else {
    notice(rejection.message, { retry: () => toggle(form) });
  }
}

// The feed was faster than the response, or the same user likes it in another window.
function confirm(form, liked) {
  form.certain = liked;
  show(form, form.wanted ?? liked, form.wanted !== undefined);
}
