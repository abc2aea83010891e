// The operators' page in Chromium: for everybody, by keyboard, on a phone, in the dark, without
// script, and with charts that move.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const [demo, perl, application, playwright, axePath, executablePath, shots] = process.argv.slice(2);
const { chromium } = await import(playwright);
const axe = readFileSync(axePath, "utf8");
const sizes = { desktop: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

// Evaluated by the debugger: the page's own policy lets no script in.
async function expectAccessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const found = violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
  assert.deepEqual(found, [], what);
}

async function expectNoOverflow(page, what) {
  const [wide, width] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(wide <= width, `${what}: ${wide} of ${width} pixels`);
}

async function open(browser, url, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const mistakes = [];
  page.on("console", (message) => message.type() === "error" && mistakes.push(message.text()));
  page.on("pageerror", (error) => mistakes.push(String(error)));
  await page.goto(url);
  return { context, page, mistakes };
}

// After two frames: a place that fits is chosen once the browser has scrolled to the term.
const helpOf = (page) => page.evaluate(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  await frame().then(frame);
  const help = document.getElementById(document.activeElement.getAttribute("aria-describedby"));
  const { left, right, top, bottom } = help.getBoundingClientRect();
  const isWhole = left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight;
  const box = [left, top, right, bottom].map(Math.round);
  return { isShown: getComputedStyle(help).display !== "none", isWhole, box, text: help.textContent };
});

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], timeout: 60_000 });
try {
  for (const [name, url] of Object.entries({ demo, perl })) {
    for (const [size, viewport] of Object.entries(sizes)) {
      for (const colorScheme of ["light", "dark"]) {
        const what = `${name}-${size}-${colorScheme}`;
        const { context, page, mistakes } = await open(browser, url, { viewport, colorScheme });
        await page.getByText("Live: every two seconds.").waitFor();
        await page.screenshot({ path: join(shots, `${what}.png`), fullPage: true });
        await expectAccessible(page, what);
        await expectNoOverflow(page, what);
        assert.deepEqual(mistakes, [], what);
        await context.close();
      }
    }
  }

  // By keyboard alone each term is reached, and its explanation is seen as a whole.
  for (const [size, viewport] of Object.entries(sizes)) {
    const { context, page, mistakes } = await open(browser, demo, { viewport });
    const terms = await page.locator(".term button").count();
    assert.ok(terms > 40, `${terms} terms`);
    let seen = 0;
    for (let step = 0; step < 3 * terms && seen < terms; step += 1) {
      await page.keyboard.press("Tab");
      if (!(await page.evaluate(() => document.activeElement.matches(".term button")))) continue;
      seen += 1;
      const help = await helpOf(page);
      assert.ok(help.isShown && help.isWhole && help.text.length > 15, `${size}: ${JSON.stringify(help)}`);
      if (seen === 12) await page.screenshot({ path: join(shots, `help-${size}.png`) });
    }
    assert.equal(seen, terms, size);
    await page.keyboard.press("Escape");
    assert.equal((await helpOf(page)).isShown, false, "Escape");
    assert.deepEqual(mistakes, [], size);
    await context.close();
  }

  // The charts move by themselves, and the focus stays; Pause stops them.
  const { context, page, mistakes } = await open(browser, demo, { viewport: sizes.desktop });
  await page.getByRole("button", { name: "Lag", exact: true }).first().focus();
  const line = () => page.locator(".line").first().getAttribute("d");
  const before = await line();
  const asked = await fetch(`${application}/hello`);
  assert.equal(await asked.text(), "Hello, world!\n");
  await page.waitForFunction((old) => document.querySelector(".line").getAttribute("d") !== old, before);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Lag");
  assert.equal((await helpOf(page)).isShown, true, "the explanation stays");
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("Paused.").waitFor();
  await page.getByRole("link", { name: "Admission" }).click();
  assert.ok(page.url().endsWith("#admission"));

  // A level by the form, and back.
  await page.getByLabel("Token").fill("an-operator's-token");
  await page.getByLabel("Level").fill("warn");
  await page.getByRole("button", { name: "Set the log's level" }).click();
  await page.getByText("the level of the log is warn").waitFor();
  await expectAccessible(page, "outcome");
  await page.getByRole("link", { name: "Back to the page" }).click();
  await page.getByRole("heading", { name: "Loops" }).waitFor();
  assert.deepEqual(mistakes, []);
  await context.close();

  // Without script it is the same page, which the browser reloads.
  const plain = await open(browser, demo, { viewport: sizes.phone, javaScriptEnabled: false });
  await plain.page.getByRole("heading", { name: "Admission" }).waitFor();
  assert.equal(await plain.page.locator("meta[http-equiv=refresh]").count(), 1);
  await plain.context.close();
} finally {
  await browser.close();
}
