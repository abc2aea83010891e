// An open album shows what is added to it, here or in another browser.
import { isShown, makePicture, reloadPictures, takeOut, trim } from "./pictures.js";

export function followAlbum(feed) {
  const tiles = document.querySelector("[data-album-tiles]");
  if (!tiles) return;
  const empty = document.getElementById("album-empty");
  // New pictures stand on the first page.
  const isNewest = !new URLSearchParams(location.search).has("before");
  const add = (picture) => {
    if (!isNewest || picture.album !== tiles.dataset.albumTiles || isShown(tiles, picture.id)) return;
    tiles.prepend(makePicture(feed, "tile-template", picture));
    trim(tiles);
    empty.hidden = true;
  };
  const onEvent = ({ body }) => {
    // A picture that is deleted by now is not in its event.
    if (body.picture) add(body.picture);
    if (!body.deleted) return;
    takeOut(tiles, body);
    empty.hidden = tiles.children.length > 0;
  };
  const reload = async () => {
    const seq = await reloadPictures(feed, tiles, location.href);
    empty.hidden = tiles.children.length > 0;
    return seq;
  };
  feed.watch("/timeline", Number(tiles.dataset.seq), onEvent, reload);
  document.addEventListener("uploaded", ({ detail }) => add(detail));
}
