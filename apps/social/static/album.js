// An open album shows what is added to it, here or in another browser.
import { isShown, makePicture, reloadPictures, trim } from "./pictures.js";

export function followAlbum(feed) {
  const tiles = document.querySelector("[data-album-tiles]");
  if (!tiles) return;
  const empty = document.getElementById("album-empty");
  const add = (picture) => {
    if (picture.album !== tiles.dataset.albumTiles || isShown(tiles, picture.id)) return;
    tiles.prepend(makePicture(feed, "tile-template", picture));
    trim(tiles);
    empty.hidden = true;
  };
  // A picture that is deleted by now is not in its event.
  const onEvent = ({ body }) => body.picture && add(body.picture);
  const reload = async () => {
    const seq = await reloadPictures(feed, tiles, location.href);
    empty.hidden = tiles.children.length > 0;
    return seq;
  };
  feed.watch("/timeline", Number(tiles.dataset.seq), onEvent, reload);
  document.addEventListener("uploaded", ({ detail }) => add(detail));
}
