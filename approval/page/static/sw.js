// Shows that something waits, and opens the page. A message holds no more than that.
"use strict";
self.addEventListener("push", (e) => {
  let text = "Something waits for you";
  try { text = e.data.json().text || text; } catch { /* a message that is none of ours says the same */ }
  e.waitUntil(self.registration.showNotification("wetink", { body: text, tag: "wetink" }));
});
self.addEventListener("notificationclick", (e) => {
  e.notification.close();
  e.waitUntil(self.clients.openWindow("/"));
});
