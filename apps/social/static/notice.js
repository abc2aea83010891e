// Short messages at the page's lower end.

const SHOWN = 8_000;

export function notice(words, { link = null, retry = null } = {}) {
  const box = document.createElement("div");
  box.className = "notice";
  const text = document.createElement("span");
  text.textContent = words;
  box.append(text);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = link;
    anchor.textContent = link;
    box.append(anchor);
  }
  if (retry) box.append(button("Try again", () => { box.remove(); retry(); }));
  if (link || retry) box.append(button("Close", () => box.remove()));
  else setTimeout(() => box.remove(), SHOWN);
  document.getElementById("notices").append(box);
}

function button(words, onClick) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  made.addEventListener("click", onClick);
  return made;
}
