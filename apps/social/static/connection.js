// Says in words when the connection is gone, and when it is back.

const BACK_IS_SHOWN = 4_000;
// Leaving a page closes its connection too: only what lasts is worth a word.
const LOST_AFTER = 300;

export function showConnection(feed) {
  const line = document.getElementById("connection");
  let timer = 0;
  const say = (state, words) => {
    clearTimeout(timer);
    line.dataset.state = state;
    line.textContent = words;
  };
  const hide = () => {
    delete line.dataset.state;
    line.textContent = "";
  };
  feed.addEventListener("state", ({ detail: state }) => {
    const wasLost = line.dataset.state === "lost";
    clearTimeout(timer);
    if (state === "ended") {
      say("lost", "You are no longer logged in here. ");
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = "Load the page again";
      line.append(link);
    } else if (state === "lost" && !wasLost) {
      timer = setTimeout(() => say("lost", "The connection is gone. What you see may be old; trying again…"), LOST_AFTER);
    } else if (state === "open" && wasLost) {
      say("back", "The connection is back, and everything is up to date.");
      timer = setTimeout(hide, BACK_IS_SHOWN);
    }
  });
}
