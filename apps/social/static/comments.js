// Comments come and go while the page is open.
import { call, me, rejection } from "./api.js";
import { notice } from "./notice.js";
import { showPerson } from "./people.js";
import { showTimes } from "./times.js";

export function followComments(feed) {
  const list = document.querySelector("[data-comments]");
  if (!list) return;
  const picture = list.dataset.comments;
  const onEvent = ({ body }) => {
    if (body.comment) add(list, body.comment);
    // What was said in a comment that is deleted by now is no longer in the log.
    else if (body.deleted) document.getElementById(`comment-${body.deleted}`)?.remove();
  };
  feed.watch(`/picture/${picture}/comments`, Number(list.dataset.seq), onEvent, () => reload(list));
  improveForm(list, document.getElementById("say"));
  list.addEventListener("submit", (event) => {
    event.preventDefault();
    remove(event.target.closest("[data-comment]"));
  });
}

function add(list, comment) {
  // The newest stand on the last page.
  if ("more" in list.dataset || document.getElementById(`comment-${comment.id}`)) return;
  const made = document.getElementById("comment-template").content.firstElementChild.cloneNode(true);
  made.id = `comment-${comment.id}`;
  made.dataset.comment = comment.id;
  showPerson(made, comment.author.name);
  made.querySelector(".comment-text").textContent = comment.text;
  made.querySelector("time").setAttribute("datetime", comment.created_at);
  const deletion = made.querySelector("form");
  if (me !== null && [comment.author.id, list.dataset.owner].includes(me)) {
    deletion.action = `/comments/${comment.id}/delete`;
    deletion.querySelector("button").setAttribute("aria-label", `Delete the comment by ${comment.author.name}`);
  } else {
    deletion.remove();
  }
  made.classList.add("arrived");
  showTimes(made);
  list.append(made);
}

async function remove(comment) {
  comment.hidden = true;
  try {
    await call("DELETE", `/api/comments/${comment.dataset.comment}`);
    comment.remove();
    document.getElementById("text")?.focus();
  } catch (rejection) {
    if (rejection.status === 404) {
      comment.remove();
      return;
    }
    comment.hidden = false;
    notice(rejection.message, { retry: () => remove(comment) });
  }
}

function improveForm(list, form) {
  if (!form) return;
  const text = form.elements.text;
  const button = form.querySelector("button");
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  const send = async () => {
    button.disabled = true;
    const page = `/pictures/${list.dataset.comments}`;
    const sent = text.value;
    try {
      const comment = await call("POST", `/api${page}/comments`, { text: sent });
      // What was typed meanwhile is the next comment.
      const isNext = text.value !== sent;
      if (!isNext) text.value = "";
      if ("more" in list.dataset && !isNext) location.assign(`${page}?comment=${comment.id}#comment-${comment.id}`);
      else add(list, comment);
    } catch (rejection) {
      notice(rejection.message, { retry: send });
    } finally {
      button.disabled = false;
      if ([button, document.body].includes(document.activeElement)) text.focus();
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!button.disabled) send();
  });
}

async function reload(list) {
  const response = await fetch(location.href, { credentials: "same-origin" });
  if (!response.ok) throw rejection(response.status, "");
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const fresh = page.querySelector("[data-comments]");
  list.replaceChildren(...fresh.children);
  list.toggleAttribute("data-more", "more" in fresh.dataset);
  const more = document.getElementById("more");
  more.replaceChildren(...page.getElementById("more").children);
  showTimes(list);
  return Number(fresh.dataset.seq);
}
