// The browser, the servers, and helpers for all scenes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { join } from "node:path";

const { chromium } = await import(process.env.TOUR_PLAYWRIGHT);

// Long enough for an unoptimised server on an overloaded machine; others end each wait sooner.
export const WAIT = 60_000;
const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

export const replicas = process.argv.slice(2).map((argument) => {
  const [name, address] = argument.split("=");
  return { name, address };
});
export const isShared = replicas.length > 1;
export const directory = process.env.TOUR_DIRECTORY;
export const browser = await chromium.launch({ executablePath: process.env.TOUR_CHROMIUM, args: FLAGS });

export function say(words) {
  process.stderr.write(`${words}\n`);
}

// Asks the test to "kill" or to "start" a replica, and waits until it is done.
const replies = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export async function order(what, replica) {
  process.stdout.write(`${what} ${replica.name}\n`);
  const { value } = await replies.next();
  assert.equal(value, "done");
}

export async function untilItResponds(replica) {
  const end = Date.now() + WAIT;
  for (;;) {
    const response = await fetch(`${replica.address}/health`).catch(() => null);
    if (response?.ok) return;
    assert(Date.now() < end, `replica ${replica.name} does not respond`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

// Opens a separate browser for one user: only the server is shared. `mistakes` collects the errors
// that the pages report.
export async function person(replica, options = {}) {
  const context = await browser.newContext({
    baseURL: replica.address,
    viewport: { width: 1200, height: 860 },
    locale: "en-GB",
    ...options,
  });
  context.setDefaultTimeout(WAIT);
  const mistakes = [];
  context.on("console", (message) => message.type() === "error" && mistakes.push(message.text()));
  context.on("weberror", (error) => mistakes.push(String(error.error())));
  return { context, page: await context.newPage(), mistakes, replica };
}

// Checks the errors: a scene names those that it causes on purpose, and no others may occur.
export function expectMistakes(somebody, ...expected) {
  const others = somebody.mistakes.filter((text) => !expected.some((pattern) => pattern.test(text)));
  assert.deepEqual(others, [], "the page complains");
  somebody.mistakes.length = 0;
}

// Sets a mark that a reload would remove.
export const mark = (page) => page.evaluate(() => { window.wasNotReloaded = true; });
export async function expectNoReload(page) {
  assert.equal(await page.evaluate(() => window.wasNotReloaded), true, "the page was reloaded");
}

export async function expectText(locator, text) {
  await locator.filter({ hasText: text instanceof RegExp ? text : new RegExp(`^\\s*${text}\\s*$`) }).waitFor();
}

let shots = 0;
export async function shoot(page, name) {
  shots += 1;
  await page.evaluate(() => Promise.all([...document.images].map((image) => {
    image.loading = "eager";
    return image.decode().catch(() => null);
  })));
  await page.evaluate(() => Promise.all(document.getAnimations().map((animation) => animation.finished.catch(() => null))));
  const file = `${String(shots).padStart(2, "0")}-${name}.png`;
  await page.screenshot({ path: join(process.env.TOUR_SCREENSHOTS, file) });
}

// The source of axe-core, which checks a page for screen readers and for its contrasts.
const axe = readFileSync(process.env.TOUR_AXE, "utf8");
export async function expectAccessible(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
  assert.deepEqual(found, [], `${page.url()} is not accessible`);
}

// Checks that all of an element is visible: no scrolling or hiding box, nor the window, clips it.
export async function expectWhole(locator) {
  await locator.scrollIntoViewIfNeeded();
  const cut = await locator.evaluate((element) => {
    const box = element.getBoundingClientRect();
    for (let around = element.parentElement; around; around = around.parentElement) {
      if (getComputedStyle(around).overflowX === "visible") continue;
      const { left, right } = around === document.documentElement ? { left: 0, right: innerWidth } : around.getBoundingClientRect();
      if (box.left < left - 1 || box.right > right + 1) return `${around.tagName} ${around.className}`;
    }
    return box.left < 0 || box.right > innerWidth ? "the window" : null;
  });
  assert.equal(cut, null, "it is cut off");
}

export async function expectNoSidewaysScroll(page) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert(content <= window, `${page.url()} is ${content} pixels wide on a screen of ${window}`);
}
