// Cards and tiles of pictures that come while the page is open, made from the page's own templates.
import { followCounts } from "./counts.js";
import { showPerson } from "./people.js";
import { showTimes } from "./times.js";

const NOBODY = "0".repeat(32);

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
  image.alt = picture.caption || `Picture by ${picture.owner.name}`;
  if (made.querySelector(".avatar")) showPerson(made, picture.owner.name);
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

export const isShown = (list, picture) => list.querySelector(`[data-picture="${picture}"]`) !== null;
