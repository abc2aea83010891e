// The small "are you sure" boxes close with Escape and with a click elsewhere.

export function improveMenus() {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const open = document.querySelector("details.sure[open]");
    if (!open) return;
    open.open = false;
    open.querySelector("summary").focus();
  });
  document.addEventListener("click", (event) => {
    for (const open of document.querySelectorAll("details.sure[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
}
