// The steps that do not depend on what drives the browser: Playwright or Puppeteer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

export const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

const PATIENCE_MILLIS = 60_000;

// Probes until the result is good. Only a failing test waits to the end.
export async function until(what, probe, isGood) {
  const deadline = Date.now() + PATIENCE_MILLIS;
  for (;;) {
    const seen = await probe();
    if (isGood(seen)) return seen;
    assert.ok(Date.now() < deadline, `${what}: ${JSON.stringify(seen)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

// The errors of the console and of scripts, as they come.
export function mistakesOf(page) {
  const mistakes = [];
  page.on("console", (message) => message.type() === "error" && mistakes.push(message.text()));
  page.on("pageerror", (error) => mistakes.push(String(error)));
  return mistakes;
}

const said = (page) => page.evaluate(() => document.getElementById("fresh").textContent);

export const expectSaid = (page, text) => until(text, () => said(page), (now) => now === text);

export const expectLive = (page) => expectSaid(page, "Live: every two seconds.");

// Evaluated by the debugger: the page's own policy lets no script in.
export async function expectAccessible(page, axePath, what) {
  await page.evaluate(readFileSync(axePath, "utf8"));
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run();
    const html = (nodes) => nodes.map((node) => node.html.slice(0, 200)).join(" ");
    return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${html(nodes)}`);
  });
  assert.deepEqual(found, [], what);
}

export async function expectNoOverflow(page, what) {
  const [wide, width] = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return [scrollWidth, clientWidth];
  });
  assert.ok(wide <= width, `${what}: ${wide} of ${width} pixels`);
}

// After two frames: a place that fits is chosen once the browser has scrolled to the term.
const helpOf = (page) => page.evaluate(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame().then(frame);
  const help = document.getElementById(document.activeElement.getAttribute("aria-describedby"));
  const { left, right, top, bottom } = help.getBoundingClientRect();
  const isWhole = left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight;
  const box = [left, top, right, bottom].map(Math.round);
  // What is seen in its middle: no table clips it, and nothing lies over it.
  const isOnTop = help.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  const isShown = getComputedStyle(help).display !== "none";
  return { isShown, isWhole, isOnTop, box, text: help.textContent };
});

// By keyboard alone each term is reached, and its explanation is seen as a whole.
export async function expectTermsByKeyboard(page, shots, what) {
  const terms = await page.evaluate(() => document.querySelectorAll(".term button").length);
  assert.ok(terms > 40, `${terms} terms`);
  let seen = 0;
  for (let step = 0; step < 3 * terms && seen < terms; step += 1) {
    await page.keyboard.press("Tab");
    if (!(await page.evaluate(() => document.activeElement.matches(".term button")))) continue;
    seen += 1;
    const help = await helpOf(page);
    const isGood = help.isShown && help.isWhole && help.isOnTop && help.text.length > 15;
    assert.ok(isGood, `${what}: ${JSON.stringify(help)}`);
    if (seen === 12) await page.screenshot({ path: join(shots, `${what}.png`) });
  }
  assert.equal(seen, terms, what);
  await page.keyboard.press("Escape");
  assert.equal((await helpOf(page)).isShown, false, "Escape");
  // It stays away while the page goes on: the second response is fetched when the first is shown.
  for (let shown = 0; shown < 2; shown += 1) await page.waitForResponse(isPage);
  assert.equal((await helpOf(page)).isShown, false, "Escape, and a fresh page");
}

const isPage = (response) => new URL(response.url()).pathname === "/";

const lineOf = (page) => page.evaluate(() => document.querySelector(".line").getAttribute("d"));

const historyOf = async (url) => (await fetch(`${url}/greenroom/history`)).text();

// Waits for samples, one a second, until the page would have shown some of them.
async function awaitSamples(url) {
  for (let sample = 0; sample < 4; sample += 1) {
    const before = await historyOf(url);
    await until("a sample", () => historyOf(url), (now) => now !== before);
  }
}

// The charts move by themselves, and the focus stays where it is, with its explanation.
export async function expectChartsToMove(page, application) {
  await page.focus("#loops .term button");
  const before = await lineOf(page);
  const response = await fetch(`${application}/hello`);
  assert.equal(await response.text(), "Hello, world!\n");
  await until("a moved chart", () => lineOf(page), (now) => now !== before);
  const { isShown, text } = await helpOf(page);
  assert.ok(isShown && text.length > 15, "the explanation stays");
}

// Pause stops them, even when a response is under way.
export async function expectPauseToStop(page, url) {
  await page.evaluate(() => {
    const { fetch } = window;
    window.fetch = async (...request) => {
      const response = await fetch(...request);
      await new Promise((done) => { window.release = done; });
      return response;
    };
  });
  await until("a response under way", () => page.evaluate(() => "release" in window), Boolean);
  const before = await lineOf(page);
  await page.click("#pause");
  await expectSaid(page, "Paused.");
  await page.evaluate(() => window.release());
  await awaitSamples(url);
  assert.equal(await said(page), "Paused.");
  assert.equal(await lineOf(page), before, "a chart moved");
}
