// The service worker: shows notifications that come while no page is open. It caches nothing.

self.addEventListener("push", (event) => {
  const told = event.data?.json() ?? {};
  const title = told.title ?? words(told);
  const options = { body: told.body ?? "", icon: "/favicon.svg", tag: told.picture, data: { url: address(told) } };
  event.waitUntil(self.registration.showNotification(title, options));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.url));
});

function words({ kind, by }) {
  return kind === "comment" ? `${by} said something about your picture` : `${by} likes your picture`;
}

// Only pages of our own are opened, whatever the message says.
function address({ url, picture }) {
  const wanted = new URL(url ?? (picture ? `/pictures/${picture}` : "/bell"), self.location.origin);
  return wanted.origin === self.location.origin ? wanted.href : self.location.origin;
}

async function show(url) {
  const open = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const same = open.find((client) => client.url === url);
  return same ? same.focus() : self.clients.openWindow(url);
}
