// Counts of likes and comments. An event carries the total, so a count is set and never added up.
import { call } from "./api.js";

// What a count is, apart from what the viewer has just asked for and the server has not confirmed.
const confirmed = new WeakMap();
const watches = new WeakMap();

export function followCounts(feed, root) {
  for (const shown of root.querySelectorAll("[data-count]")) followCount(feed, shown);
}

export function forgetCounts(root) {
  for (const shown of root.querySelectorAll("[data-count]")) watches.get(shown)?.();
}

function followCount(feed, shown) {
  const { topic, count: kind } = shown.dataset;
  const reload = async () => {
    const [, , picture] = topic.split("/");
    const view = await call("GET", `/api/pictures/${picture}`);
    setCount(shown, view[kind], view[`${kind}_seq`]);
    return view[`${kind}_seq`];
  };
  const onEvent = (event) => {
    setCount(shown, event.total, event.seq);
    shown.dispatchEvent(new CustomEvent("counted", { bubbles: true, detail: event }));
  };
  watches.set(shown, feed.watch(topic, Number(shown.dataset.seq), onEvent, reload));
}

// Sets what is certain; an older response that comes later changes nothing.
export function setCount(shown, total, seq) {
  if (seq < Number(shown.dataset.seq)) return;
  shown.dataset.seq = seq;
  confirmed.set(shown, total);
  show(shown, total + Number(shown.dataset.ahead ?? 0));
}

// Shows what will be, if the server agrees; 0 takes it back.
export function setAhead(shown, ahead) {
  const total = confirmed.get(shown) ?? Number(shown.textContent) - Number(shown.dataset.ahead ?? 0);
  confirmed.set(shown, total);
  shown.dataset.ahead = ahead;
  show(shown, total + ahead);
}

function show(shown, number) {
  const text = String(number);
  if (shown.textContent === text) return;
  shown.textContent = text;
  shown.classList.remove("moved");
  requestAnimationFrame(() => shown.classList.add("moved"));
}
