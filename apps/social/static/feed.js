// The live feed: one WebSocket, and for each topic the number of the last event that was seen. After a lost
// connection the topics are watched from these numbers, so nothing is missed and nothing comes twice.

const RETRY_LEAST = 500;
const RETRY_MOST = 10_000;
// A connection can die without a word: after so much silence the server is asked for a sign of life…
const SILENCE = 30_000;
// … and has so long to give one.
const REPLY = 15_000;
// The server's close code when the session has ended: to connect again would be of no use.
const SESSION_ENDED = 3000;
// Topics in one message; the server takes 16 KiB at a time.
const TOPICS_PER_MESSAGE = 100;

export class Feed extends EventTarget {
  #address;
  #socket = null;
  #topics = new Map();
  #pending = new Set();
  #failures = 0;
  #retry = 0;
  #heard = 0;
  #pulse = 0;

  constructor(address) {
    super();
    this.#address = new URL(address);
    this.#address.protocol = this.#address.protocol === "https:" ? "wss:" : "ws:";
  }

  get isOpen() {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  // `seen` is the number of the last event that the page shows; null: from now on. `onEvent` gets each later event once.
  // `reload` loads the state anew, if the log no longer has what was missed, and gives the number that it is of.
  // The result ends the watch.
  watch(topic, seen, onEvent, reload = async () => null) {
    const watcher = { seen, onEvent, reload };
    const watchers = this.#topics.get(topic) ?? new Set();
    watchers.add(watcher);
    this.#topics.set(topic, watchers);
    this.#send(topic);
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#topics.get(topic) === watchers) {
        this.#topics.delete(topic);
        if (this.isOpen) this.#socket.send(JSON.stringify({ unwatch: [topic] }));
      }
    };
  }

  open() {
    window.addEventListener("online", () => this.#connect());
    window.addEventListener("offline", () => this.#socket?.close());
    window.addEventListener("pageshow", (event) => event.persisted && this.#connect());
    window.addEventListener("pagehide", () => this.#leave());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.#connect());
    this.#connect();
  }

  #connect() {
    if (this.#socket || this.#topics.size === 0) return;
    clearTimeout(this.#retry);
    const socket = new WebSocket(this.#address);
    this.#socket = socket;
    socket.addEventListener("open", () => this.#opened());
    socket.addEventListener("message", (event) => this.#received(JSON.parse(event.data)));
    socket.addEventListener("close", ({ code }) => this.#closed(socket, code));
  }

  #opened() {
    this.#failures = 0;
    this.#heard = Date.now();
    clearInterval(this.#pulse);
    this.#pulse = setInterval(() => this.#checkPulse(), SILENCE / 2);
    for (const topic of this.#topics.keys()) this.#send(topic);
    this.dispatchEvent(new CustomEvent("state", { detail: "open" }));
  }

  #closed(socket, code) {
    if (socket !== this.#socket) return;
    this.#socket = null;
    clearInterval(this.#pulse);
    if (code === SESSION_ENDED) {
      this.#end();
      return;
    }
    const wait = Math.min(RETRY_MOST, RETRY_LEAST * 2 ** this.#failures);
    this.#failures += 1;
    // A fleet of browsers that lost the same server must not come back in the same instant.
    this.#retry = setTimeout(() => this.#connect(), wait * (0.5 + Math.random() / 2));
    this.dispatchEvent(new CustomEvent("state", { detail: "lost" }));
  }

  // Whoever was logged in on this page is so no longer.
  #end() {
    this.#topics.clear();
    this.#leave();
    this.dispatchEvent(new CustomEvent("state", { detail: "ended" }));
  }

  #leave() {
    const socket = this.#socket;
    this.#socket = null;
    clearTimeout(this.#retry);
    clearInterval(this.#pulse);
    socket?.close();
  }

  #checkPulse() {
    const silence = Date.now() - this.#heard;
    if (silence > SILENCE + REPLY) {
      const socket = this.#socket;
      socket.close();
      this.#closed(socket);
    } else if (silence > SILENCE) {
      const [topic] = this.#topics.keys();
      if (topic) this.#send(topic);
    }
  }

  // Gathers what one task of the page asks for into one message.
  #send(topic) {
    if (!this.isOpen) return;
    if (this.#pending.size === 0) queueMicrotask(() => this.#flush());
    this.#pending.add(topic);
  }

  #flush() {
    const topics = [...this.#pending].filter((topic) => this.#topics.has(topic));
    this.#pending.clear();
    for (let first = 0; this.isOpen && first < topics.length; first += TOPICS_PER_MESSAGE) {
      const some = topics.slice(first, first + TOPICS_PER_MESSAGE);
      const watch = Object.fromEntries(some.map((topic) => [topic, this.#position(topic)]));
      this.#socket.send(JSON.stringify({ watch }));
    }
  }

  #position(topic) {
    const known = [...this.#topics.get(topic)].map((watcher) => watcher.seen).filter((seen) => seen !== null);
    return known.length > 0 ? Math.min(...known) : null;
  }

  #received(message) {
    this.#heard = Date.now();
    for (const [topic, seq] of Object.entries(message.at ?? {})) this.#began(topic, seq);
    for (const event of message.events ?? []) this.#happened(event);
    for (const topic of Object.keys(message.reset ?? {})) this.#reload(topic);
    for (const topic of Object.keys(message.refused ?? {})) this.#refused(topic);
  }

  // The bell is refused to who has logged out while there was no connection.
  #refused(topic) {
    if (topic.startsWith("/user/")) this.#end();
    else this.#topics.delete(topic);
  }

  #began(topic, seq) {
    for (const watcher of this.#topics.get(topic) ?? []) watcher.seen ??= seq;
  }

  #happened(event) {
    for (const watcher of this.#topics.get(event.topic) ?? []) {
      if (watcher.seen !== null && event.seq <= watcher.seen) continue;
      watcher.seen = event.seq;
      watcher.onEvent(event);
    }
  }

  async #reload(topic, wait = RETRY_LEAST) {
    const watchers = [...(this.#topics.get(topic) ?? [])];
    try {
      await Promise.all(watchers.map(async (watcher) => { watcher.seen = await watcher.reload(); }));
      if (this.#topics.has(topic)) this.#send(topic);
    } catch (failure) {
      // What it is about is gone, and does not come back.
      if (failure.status === 404) return;
      setTimeout(() => this.#reload(topic, Math.min(RETRY_MOST, wait * 2)), wait);
    }
  }
}
