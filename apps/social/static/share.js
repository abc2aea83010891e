// Sharing tells where the picture is now, without leaving it.
import { call } from "./api.js";
import { notice } from "./notice.js";

export function improveShare() {
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-share]")) return;
    event.preventDefault();
    share(event.target);
  });
}

async function share(form) {
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const { url } = await call("POST", `/api/pictures/${form.dataset.share}/share`);
    notice("Shared:", { link: url });
  } catch (rejection) {
    notice(rejection.message, { retry: () => share(form) });
  } finally {
    button.disabled = false;
  }
}
