// Notifications by the browser's push service, also while the page is closed.
import { call } from "./api.js";
import { notice } from "./notice.js";

// Nobody waits longer for the push service to log out.
const LOG_OUT_WAIT = 1_000;

export async function offerPush() {
  const section = document.getElementById("push");
  if (!section || !("serviceWorker" in navigator) || !("PushManager" in window)) return;
  const worker = await navigator.serviceWorker.register("/sw.js");
  const button = document.getElementById("push-button");
  const show = (isOn) => {
    button.textContent = isOn ? "Switch off" : "Switch on";
    button.setAttribute("aria-pressed", String(isOn));
    section.hidden = false;
  };
  let subscription = await known(await worker.pushManager.getSubscription());
  show(subscription !== null);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      subscription = subscription ? await switchOff(subscription) : await switchOn(worker, section.dataset.key);
    } catch (failed) {
      notice(failed.name === "NotAllowedError" ? "The browser does not allow notifications of this page." : failed.message);
    } finally {
      button.disabled = false;
      show(subscription !== null);
    }
  });
}

// What the server still sends to: it has forgotten what was switched on by a session that has ended.
async function known(subscription) {
  if (!subscription) return null;
  const endpoints = await call("GET", "/api/me/push");
  return endpoints.includes(subscription.endpoint) ? subscription : null;
}

// Who logs out gets no more notifications: the server forgets the browser, and the browser its subscription.
export function endPushWithSession() {
  const form = document.querySelector('form[action="/log-out"]');
  if (!form || !("serviceWorker" in navigator)) return;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const patience = new Promise((done) => setTimeout(done, LOG_OUT_WAIT));
    await Promise.race([unsubscribe().catch(() => null), patience]);
    form.submit();
  });
}

async function unsubscribe() {
  const worker = await navigator.serviceWorker.getRegistration();
  const subscription = await worker?.pushManager?.getSubscription();
  await subscription?.unsubscribe();
}

async function switchOn(worker, key) {
  const subscription = await worker.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  await call("POST", "/api/me/push", subscription.toJSON());
  return subscription;
}

async function switchOff(subscription) {
  // The server first: else, if that fails, it would go on sending to who does not listen any more.
  await call("DELETE", "/api/me/push", { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
  return null;
}
