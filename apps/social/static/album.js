// An open album shows what is added to it, here or in another browser.
import { isShown, makePicture } from "./pictures.js";

export function followAlbum(feed) {
  const tiles = document.querySelector("[data-album-tiles]");
  if (!tiles) return;
  const add = (picture) => {
    if (picture.album !== tiles.dataset.albumTiles || isShown(tiles, picture.id)) return;
    tiles.prepend(makePicture(feed, "tile-template", picture));
    document.getElementById("album-empty").hidden = true;
  };
  feed.watch("/timeline", null, ({ body }) => add(body.picture));
  document.addEventListener("uploaded", ({ detail }) => add(detail));
}
