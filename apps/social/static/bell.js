// The bell's number in every open window, and the list on its own page.
import { call } from "./api.js";
import { showTimes } from "./times.js";

// Windows of one browser tell each other what was seen.
const windows = new BroadcastChannel("bell");

export function followBadge(feed) {
  const badge = document.querySelector("[data-bell]");
  if (!badge) return;
  const show = () => {
    const unseen = Math.max(0, Number(badge.dataset.seq) - Number(badge.dataset.seen));
    badge.querySelector("[data-bell-number]").textContent = unseen;
    badge.hidden = unseen === 0;
  };
  const moveTo = (name, seq) => {
    badge.dataset[name] = Math.max(Number(badge.dataset[name]), seq);
    show();
  };
  const reload = async () => {
    const { seq, unseen } = await call("GET", "/api/me/bell");
    badge.dataset.seq = seq;
    badge.dataset.seen = seq - unseen;
    show();
    return seq;
  };
  feed.watch(badge.dataset.bell, Number(badge.dataset.seq), ({ seq }) => moveTo("seq", seq), reload);
  windows.addEventListener("message", ({ data }) => moveTo("seen", data));
  document.addEventListener("seen", ({ detail }) => moveTo("seen", detail));
  feed.addEventListener("state", ({ detail }) => { if (detail === "ended") badge.hidden = true; });
}

export function followBellList(feed) {
  const list = document.getElementById("bell-list");
  const badge = document.querySelector("[data-bell]");
  if (!list || !badge) return;
  const onEvent = (event) => {
    if (event.body.picture) list.prepend(makeEntry(event.seq, event.at, event.body));
    list.dataset.seq = event.seq;
    document.getElementById("bell-empty").hidden = list.children.length > 0;
    markSeen(list);
  };
  const reload = async () => {
    const { seq, entries } = await call("GET", "/api/me/bell");
    list.replaceChildren(...entries.map((entry) => makeEntry(entry.seq, entry.at, entry)));
    list.dataset.seq = seq;
    return seq;
  };
  feed.watch(badge.dataset.bell, Number(list.dataset.seq), onEvent, reload);
  document.addEventListener("visibilitychange", () => markSeen(list));
  markSeen(list);
}

function makeEntry(seq, at, { kind, by, picture }) {
  const made = document.getElementById("bell-template").content.firstElementChild.cloneNode(true);
  made.dataset.entry = seq;
  made.querySelector("a").href = `/pictures/${picture}`;
  made.querySelector("img").src = `/files/${picture}/small`;
  made.querySelector("strong").textContent = by;
  made.querySelector(".what").textContent = kind === "like" ? "likes your picture" : "said something about your picture";
  made.querySelector("time").setAttribute("datetime", at);
  made.classList.add("arrived");
  showTimes(made);
  return made;
}

// Who has the list before their eyes has seen it. If this fails the number simply stays.
async function markSeen(list) {
  const seen = Number(list.dataset.seq);
  if (document.visibilityState !== "visible" || seen <= Number(list.dataset.told ?? 0)) return;
  try {
    await call("PUT", "/api/me/bell", { seen });
  } catch {
    return;
  }
  list.dataset.told = seen;
  document.getElementById("seen-form").hidden = true;
  document.dispatchEvent(new CustomEvent("seen", { detail: seen }));
  windows.postMessage(seen);
}
