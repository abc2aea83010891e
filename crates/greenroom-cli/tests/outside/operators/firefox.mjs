// The operators' page in Firefox, by WebDriver BiDi: for everybody, by keyboard, on a phone, in the
// dark, with and without anchors of style sheets, and with charts that move.
import assert from "node:assert/strict";
import { join } from "node:path";

import {
  expectAccessible, expectChartsToMove, expectLive, expectNoOverflow, expectPauseToStop,
  expectTermsByKeyboard, mistakesOf, sizes,
} from "./steps.mjs";

const [url, application, puppeteerPath, axePath, executablePath, shots, name] = process.argv.slice(2);
const { default: puppeteer } = await import(puppeteerPath);

// What BiDi does not set are preferences, so each look is a browser of its own. The older of two
// series that Debian has places no explanations by anchors.
const looks = {
  light: { "layout.css.prefers-color-scheme.content-override": 1 },
  dark: { "layout.css.prefers-color-scheme.content-override": 0, "layout.css.anchor-positioning.enabled": false },
};

async function open(browser, viewport) {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.setViewport(viewport);
  const mistakes = mistakesOf(page);
  await page.goto(url);
  await expectLive(page);
  return { page, mistakes };
}

async function expectLook(browser, look) {
  for (const [size, viewport] of Object.entries(sizes)) {
    const what = `${name}-${size}-${look}`;
    const { page, mistakes } = await open(browser, viewport);
    const isDark = await page.evaluate(() => matchMedia("(prefers-color-scheme: dark)").matches);
    assert.equal(isDark, look === "dark");
    const hasAnchors = await page.evaluate(() => CSS.supports("anchor-scope: --term"));
    if (look === "dark") assert.equal(hasAnchors, false);
    await page.screenshot({ path: join(shots, `${what}.png`), fullPage: true });
    await expectAccessible(page, axePath, what);
    await expectNoOverflow(page, what);
    await expectTermsByKeyboard(page, shots, `${what}-help`);
    await expectNoOverflow(page, what);
    assert.deepEqual(mistakes, [], what);
    await page.close();
  }
}

for (const [look, extraPrefsFirefox] of Object.entries(looks)) {
  const browser = await puppeteer.launch({
    browser: "firefox", executablePath, extraPrefsFirefox, timeout: 60_000, protocolTimeout: 60_000,
  });
  try {
    await expectLook(browser, look);
    if (look === "light") {
      const { page, mistakes } = await open(browser, sizes.desktop);
      await expectChartsToMove(page, application);
      await expectPauseToStop(page, url);
      assert.deepEqual(mistakes, []);
    }
  } finally {
    await browser.close();
  }
}
