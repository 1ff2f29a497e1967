// A service worker: keeps the page's files, and serves them where there is no network. With one, the server's files are newer.

const KEPT = "ptxvm";
const FILES = ["./", "main.js", "worker.js", "style.css", "icon.svg", "ptxvm.wasm"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(KEPT).then((kept) => kept.addAll(FILES)).then(() => self.skipWaiting()));
});

self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

async function serve(request) {
  const kept = await caches.open(KEPT);
  try {
    const response = await fetch(request);
    if (response.ok) await kept.put(request, response.clone());
    return response;
  } catch (error) {
    const response = await kept.match(request, { ignoreSearch: true, ignoreVary: true });
    if (!response) throw error;
    return response;
  }
}

self.addEventListener("fetch", (event) => {
  const isOurs = event.request.url.startsWith(self.registration.scope);
  if (event.request.method === "GET" && isOurs) event.respondWith(serve(event.request));
});
