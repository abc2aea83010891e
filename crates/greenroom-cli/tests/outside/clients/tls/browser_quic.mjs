// Chromium by HTTP/3: a page, and a long body both ways.
import assert from "node:assert/strict";
import { X509Certificate, createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [base, playwright, executablePath, certificate] = process.argv.slice(2);
const { chromium } = await import(playwright);
const { publicKey } = new X509Certificate(readFileSync(certificate));
const key = publicKey.export({ type: "spki", format: "der" });
const pin = createHash("sha256").update(key).digest("base64");
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-background-networking",
  "--no-proxy-server",
  "--enable-quic",
  // It takes ::1 for localhost first, where nobody listens.
  "--host-resolver-rules=MAP localhost 127.0.0.1",
  `--origin-to-force-quic-on=${new URL(base).host}`,
  // It has effect only beside a directory of its own for the user.
  `--ignore-certificate-errors-spki-list=${pin}`,
];
const user = mkdtempSync(join(tmpdir(), "greenroom-browser-"));
const settings = { executablePath, args, timeout: 60_000 };
try {
  const browser = await chromium.launchPersistentContext(user, settings);
  try {
    browser.setDefaultTimeout(60_000);
    const page = await browser.newPage();
    const response = await page.goto(`${base}/hello`);
    assert.equal(await response.text(), "Hello, world!\n");
    const told = await page.evaluate(async () => {
      const long = await (await fetch("/bytes/20000000")).arrayBuffer();
      const body = new Uint8Array(5_000_000);
      const receipt = await (await fetch("/upload", { method: "POST", body })).json();
      const entries = ["navigation", "resource"].flatMap((of) => performance.getEntriesByType(of));
      const protocols = new Set(entries.map(({ nextHopProtocol }) => nextHopProtocol));
      return [long.byteLength, receipt.bytes, ...protocols];
    });
    assert.deepEqual(told, [20_000_000, 5_000_000, "h3"]);
  } finally {
    await browser.close();
  }
} finally {
  rmSync(user, { recursive: true, force: true });
}
