// New pictures: at once for who is at the top, otherwise behind a button that says how many there are.
import { followCounts, forgetCounts } from "./counts.js";
import { isShown, makePicture } from "./pictures.js";
import { showTimes } from "./times.js";

// Cards in the page: each watches two topics, and a client may watch 200.
const CARDS_MAX = 60;
// Pixels from the top within which the reader does not lose their place.
const TOP = 200;

export function followTimeline(feed) {
  const list = document.querySelector("[data-timeline]");
  if (!list) return;
  const news = document.getElementById("news");
  const waiting = [];
  const offer = () => {
    news.hidden = waiting.length === 0;
    news.textContent = waiting.length === 1 ? "1 new picture" : `${waiting.length} new pictures`;
  };
  const insert = () => {
    for (const picture of waiting.splice(0)) {
      if (!isShown(list, picture.id)) list.prepend(makePicture(feed, "card-template", picture));
    }
    document.getElementById("timeline-empty").hidden = true;
    trim(list);
    offer();
  };
  const onEvent = ({ body }) => {
    if (isShown(list, body.picture.id) || waiting.some(({ id }) => id === body.picture.id)) return;
    waiting.push(body.picture);
    if (window.scrollY < TOP && !list.contains(document.activeElement)) insert();
    else offer();
  };
  news.addEventListener("click", () => {
    insert();
    window.scrollTo({ top: 0, behavior: "smooth" });
    list.querySelector(".card .frame")?.focus({ preventScroll: true });
  });
  const reload = async () => {
    waiting.length = 0;
    offer();
    return reloadList(feed, list);
  };
  feed.watch("/timeline", Number(list.dataset.seq), onEvent, reload);
}

function trim(list) {
  while (list.children.length > CARDS_MAX) {
    forgetCounts(list.lastElementChild);
    list.lastElementChild.remove();
    const older = document.getElementById("older");
    if (older) older.href = `/?before=${list.lastElementChild.dataset.picture}`;
  }
}

async function reloadList(feed, list) {
  const answer = await fetch("/", { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`the timeline cannot be loaded: ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("[data-timeline]");
  forgetCounts(list);
  list.replaceChildren(...fresh.children);
  showTimes(list);
  followCounts(feed, list);
  return Number(fresh.dataset.seq);
}
