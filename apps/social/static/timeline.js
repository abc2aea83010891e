// New pictures: at once for who is at the top, otherwise behind a button that says how many there are.
import { isShown, makePicture, reloadPictures, takeOut, trim } from "./pictures.js";

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
  const leave = (body) => {
    takeOut(list, body);
    const isGone = ({ id, album }) => id === body.deleted || album === body.deleted_album;
    waiting.splice(0, waiting.length, ...waiting.filter((picture) => !isGone(picture)));
    document.getElementById("timeline-empty").hidden = list.children.length > 0;
    offer();
  };
  const onEvent = ({ body }) => {
    if (body.deleted || body.deleted_album) leave(body);
    // It is deleted by now.
    if (!body.picture) return;
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
    return reloadPictures(feed, list, "/");
  };
  feed.watch("/timeline", Number(list.dataset.seq), onEvent, reload);
}
