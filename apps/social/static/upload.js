// Several pictures at once, each with its own preview, texts, progress and error.
import { headers, rejection } from "./api.js";

// Requests under way at a time: the server computes on two pictures at a time.
const AT_ONCE = 2;
const WAIT_MOST = 30;
const TRIES = 4;

export function improveUpload() {
  const form = document.getElementById("upload");
  if (!form) return;
  const list = document.getElementById("uploads");
  const input = form.elements.picture;
  input.multiple = true;
  input.required = false;
  for (const plain of form.querySelectorAll("[data-plain]")) plain.hidden = true;
  form.querySelector('label[for="picture"]').textContent = "Pictures";
  input.addEventListener("change", () => {
    for (const file of input.files) list.append(makeItem(form, file));
    input.value = "";
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const items = [...list.children].filter((item) => ["chosen", "failed"].includes(item.dataset.state));
    if (items.length === 0) input.click();
    else sendAll(form, items);
  });
}

function makeItem(form, file) {
  const item = document.createElement("li");
  item.className = "upload-item";
  item.file = file;
  item.innerHTML = `<img alt="" width="80" height="80"><div class="upload-body"><span class="upload-name"></span>
    <input class="upload-caption" maxlength="500" placeholder="Caption"><input class="upload-alt" maxlength="500"
    placeholder="What it shows, for who cannot see it"><progress max="1" value="0" hidden></progress>
    <span class="upload-words" role="status"></span></div>`;
  const image = item.querySelector("img");
  image.src = URL.createObjectURL(file);
  image.addEventListener("load", () => URL.revokeObjectURL(image.src));
  image.addEventListener("error", () => { image.hidden = true; });
  item.querySelector(".upload-name").textContent = file.name;
  item.querySelector(".upload-caption").setAttribute("aria-label", `Caption of ${file.name}`);
  item.querySelector(".upload-alt").setAttribute("aria-label", `What ${file.name} shows`);
  item.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    form.requestSubmit();
  });
  const isTooLong = file.size > Number(form.dataset.bytesMax);
  setState(item, isTooLong ? "refused" : "chosen", isTooLong ? "This file is too large." : "");
  return item;
}

async function sendAll(form, items) {
  const waiting = [...items];
  for (const item of items) setState(item, "waiting", "Waiting…");
  const worker = async () => {
    for (let item = waiting.shift(); item; item = waiting.shift()) await send(form, item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

async function send(form, item) {
  const progress = item.querySelector("progress");
  progress.hidden = false;
  for (let tries = 1; ; tries += 1) {
    setState(item, "sending", "Uploading…");
    try {
      const pictures = await post(form, item, (share) => {
        progress.value = share;
        if (share === 1) setState(item, "sending", "Making smaller sizes…");
      });
      for (const picture of pictures) document.dispatchEvent(new CustomEvent("uploaded", { detail: picture }));
      setState(item, "done", "Done.");
      item.remove();
      return;
    } catch (failed) {
      const wait = failed.retryAfter;
      const isPassing = [429, 503].includes(failed.status) && wait !== null && wait <= WAIT_MOST;
      if (!isPassing || tries === TRIES) {
        setState(item, "failed", failed.message);
        progress.hidden = true;
        return;
      }
      setState(item, "sending", `The server is busy; trying again in ${wait} s…`);
      await new Promise((done) => setTimeout(done, wait * 1000));
    }
  }
}

// Not by fetch, which cannot tell how much has been sent.
function post(form, item, onProgress) {
  const body = new FormData();
  body.append("picture", item.file, item.file.name);
  body.append("caption", item.querySelector(".upload-caption").value);
  body.append("alt", item.querySelector(".upload-alt").value);
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/albums/${form.dataset.album}/pictures`);
    for (const [name, value] of Object.entries(headers())) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0));
    request.upload.addEventListener("load", () => onProgress(1));
    request.addEventListener("load", () => {
      const { status, responseText } = request;
      if (status < 300) resolve(JSON.parse(responseText));
      else reject(rejection(status, responseText, request.getResponseHeader("retry-after")));
    });
    request.addEventListener("error", () => reject(new Error("The connection broke off. Upload it again.")));
    request.send(body);
  });
}

function setState(item, state, words) {
  item.dataset.state = state;
  item.querySelector(".upload-words").textContent = words;
  for (const text of item.querySelectorAll("input")) text.hidden = !["chosen", "failed"].includes(state);
}
