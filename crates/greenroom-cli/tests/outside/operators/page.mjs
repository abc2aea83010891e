// The operators' page in Chromium: for everybody, by keyboard, on a phone, in the dark, without
// script, and with charts that move.
import assert from "node:assert/strict";
import { join } from "node:path";

import {
  expectAccessible, expectChartsToMove, expectLive, expectNoOverflow, expectPauseToStop,
  expectTermsByKeyboard, mistakesOf, sizes,
} from "./steps.mjs";

const [playwright, axePath, executablePath, shots, application, demo, perl, upgraded] = process.argv.slice(2);
const { chromium } = await import(playwright);

async function open(browser, url, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const mistakes = mistakesOf(page);
  await page.goto(url);
  return { context, page, mistakes };
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], timeout: 60_000 });
try {
  for (const [name, url] of Object.entries({ demo, perl, upgraded })) {
    for (const [size, viewport] of Object.entries(sizes)) {
      for (const colorScheme of ["light", "dark"]) {
        const what = `${name}-${size}-${colorScheme}`;
        const { context, page, mistakes } = await open(browser, url, { viewport, colorScheme });
        await expectLive(page);
        await page.screenshot({ path: join(shots, `${what}.png`), fullPage: true });
        await expectAccessible(page, axePath, what);
        await expectNoOverflow(page, what);
        assert.deepEqual(mistakes, [], what);
        await context.close();
      }
    }
  }

  for (const [size, viewport] of Object.entries(sizes)) {
    const { context, page, mistakes } = await open(browser, demo, { viewport });
    await expectTermsByKeyboard(page, shots, `help-${size}`);
    assert.deepEqual(mistakes, [], size);
    await context.close();
  }

  const { context, page, mistakes } = await open(browser, demo, { viewport: sizes.desktop });
  await expectChartsToMove(page, application);
  await expectPauseToStop(page, demo);
  await page.getByRole("link", { name: "Admission" }).click();
  assert.ok(page.url().endsWith("#admission"));

  // A level by the form, and back.
  await page.getByLabel("Token").fill("an-operator's-token");
  await page.getByLabel("Level").fill("warn");
  await page.getByRole("button", { name: "Set the log's level" }).click();
  await page.getByText("the level of the log is warn").waitFor();
  await expectAccessible(page, axePath, "outcome");
  await page.getByRole("link", { name: "Back to the page" }).click();
  await page.getByRole("heading", { name: "Loops" }).waitFor();
  assert.deepEqual(mistakes, []);
  await context.close();

  // Each Perl application has a button, which restarts its workers only.
  const restarting = await open(browser, perl, { viewport: sizes.phone });
  const buttons = restarting.page.getByRole("button", { name: /^Restart the Perl workers: / });
  assert.equal(await buttons.count(), 2);
  await restarting.page.getByLabel("Token").fill("an-operator's-token");
  await restarting.page.getByRole("button", { name: "Restart the Perl workers: /blog" }).click();
  await restarting.page.getByText("restart-workers: /blog: the workers of generation 2 serve").waitFor();
  assert.deepEqual(restarting.mistakes, []);
  await restarting.context.close();

  // An upgrade that failed is said first, with what to do; the table has the ones before.
  const failed = await open(browser, upgraded, { viewport: sizes.desktop });
  const warning = failed.page.locator("#now .bad");
  assert.match(await warning.innerText(), /^The upgrade of .* ago failed: it ended before it was ready \(exit status: 7\)/);
  const advice = "/docs/upgrades.md#when-the-next-version-does-not-start";
  assert.ok((await warning.getByRole("link").getAttribute("href")).endsWith(advice));
  const outcomes = failed.page.locator("#upgrades tbody tr td:nth-child(4)");
  assert.deepEqual(await outcomes.allInnerTexts(), ["failed", "serves", "failed"]);
  await failed.context.close();

  // Without script it is the same page, which the browser reloads.
  const plain = await open(browser, demo, { viewport: sizes.phone, javaScriptEnabled: false });
  await plain.page.getByRole("heading", { name: "Admission" }).waitFor();
  assert.equal(await plain.page.locator("meta[http-equiv=refresh]").count(), 1);
  await plain.context.close();
} finally {
  await browser.close();
}
