// Cards and tiles of pictures that come while the page is open, made from the page's own templates.
import { rejection } from "./api.js";
import { followCounts, forgetCounts } from "./counts.js";
import { showPerson } from "./people.js";
import { showTimes } from "./times.js";

const NOBODY = "0".repeat(32);
// Pictures in the page: each watches two topics, and a client may watch 200.
const PICTURES_MAX = 60;

export function makePicture(feed, templateId, picture) {
  const template = document.getElementById(templateId);
  const made = template.content.firstElementChild.cloneNode(true);
  for (const element of [made, ...made.querySelectorAll("*")]) {
    for (const attribute of element.attributes) {
      if (attribute.value.includes(NOBODY)) attribute.value = attribute.value.replaceAll(NOBODY, picture.id);
    }
  }
  const image = made.querySelector("img");
  image.width = picture.width;
  image.height = picture.height;
  image.alt = picture.alt || picture.caption || `Picture by ${picture.owner.name}`;
  if (made.querySelector(".avatar")) showPerson(made, picture.owner.name);
  made.dataset.album = picture.album;
  if (made.matches(".card")) fillCard(made, picture);
  made.classList.add("arrived");
  followCounts(feed, made);
  return made;
}

function fillCard(card, picture) {
  card.setAttribute("aria-label", `Picture by ${picture.owner.name}`);
  card.querySelector(".caption").textContent = picture.caption;
  card.querySelector("time").setAttribute("datetime", picture.created_at);
  showTimes(card);
}

// Takes out of a list what an event of the timeline says is gone: a picture, or all those of an album.
export function takeOut(list, { deleted, deleted_album: album }) {
  const gone = deleted ? `[data-picture="${deleted}"]` : `[data-album="${album}"]`;
  for (const shown of list.querySelectorAll(`:scope > ${gone}`)) {
    forgetCounts(shown);
    shown.remove();
  }
}

export const isShown = (list, picture) => list.querySelector(`[data-picture="${picture}"]`) !== null;

// The older ones are on the next page then.
export function trim(list) {
  if (list.children.length <= PICTURES_MAX) return;
  while (list.children.length > PICTURES_MAX) {
    forgetCounts(list.lastElementChild);
    list.lastElementChild.remove();
  }
  const older = document.getElementById("older");
  const address = new URL(older.href);
  address.searchParams.set("before", list.lastElementChild.dataset.picture);
  older.href = address.href;
  older.hidden = false;
}

// Shows the list as the page at `address` has it now, and gives its place in the log.
export async function reloadPictures(feed, list, address) {
  const response = await fetch(address, { credentials: "same-origin" });
  if (!response.ok) throw rejection(response.status, "");
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.getElementById(list.id);
  forgetCounts(list);
  list.replaceChildren(...fresh.children);
  document.getElementById("older").replaceWith(page.getElementById("older"));
  showTimes(list);
  followCounts(feed, list);
  return Number(fresh.dataset.seq);
}
