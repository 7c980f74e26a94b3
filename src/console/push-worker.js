/** The console's service worker. It shows the notices that come by web push, asks nobody anything, and keeps nothing. */

// It answers for no page, so a newer one may take over at once.
self.addEventListener("install", () => self.skipWaiting());

self.addEventListener("push", (event) => {
  const { title, body, tag, link } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, data: { link } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.link));
});

/** Shows a page of this service, in its window where it is open. */
async function show(link) {
  const { pathname, search } = new URL(link, self.location.origin);
  const href = self.location.origin + pathname + search;
  const windows = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const there = windows.find(({ url }) => url === href);
  return there ? there.focus() : self.clients.openWindow(href);
}

// The push service has given this browser another address, or none. Only its person can add it anew.
self.addEventListener("pushsubscriptionchange", (event) => {
  const shown = self.registration.showNotification("This device is not notified any more", {
    body: "Its address for notices has ended. Add the device again under Notices.",
    tag: "device",
    data: { link: "/console/settings/notices" },
  });
  event.waitUntil(shown);
});
