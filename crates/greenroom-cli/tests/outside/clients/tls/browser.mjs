// Chromium by HTTPS: a page by HTTP/2, a long body both ways, and a WebSocket.
import assert from "node:assert/strict";

const [base, playwright, executablePath] = process.argv.slice(2);
const { chromium } = await import(playwright);
const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args, timeout: 60_000 });
try {
  // It trusts the roots of its user only, and there is none.
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const response = await page.goto(`${base}/hello`);
  assert.equal(await response.text(), "Hello, world!\n");
  const { protocol } = await response.securityDetails();
  assert.equal(protocol, "TLS 1.3");
  const told = await page.evaluate(async () => {
    const [navigation] = performance.getEntriesByType("navigation");
    const long = await (await fetch("/bytes/20000000")).arrayBuffer();
    const body = new Uint8Array(5_000_000);
    const receipt = await (await fetch("/upload", { method: "POST", body })).json();
    return [navigation.nextHopProtocol, long.byteLength, receipt.bytes];
  });
  assert.deepEqual(told, ["h2", 20_000_000, 5_000_000]);
  const echoed = await page.evaluate(async () => {
    const socket = new WebSocket(`wss://${location.host}/ws/echo`);
    socket.binaryType = "arraybuffer";
    const message = () => new Promise((done) => (socket.onmessage = ({ data }) => done(data)));
    await new Promise((done, failed) => Object.assign(socket, { onopen: done, onerror: failed }));
    socket.send("hello");
    const text = await message();
    socket.send(new Uint8Array(1_000_000));
    return [text, (await message()).byteLength];
  });
  assert.deepEqual(echoed, ["hello", 1_000_000]);
} finally {
  await browser.close();
}
