// The operators' page in Chromium while the server is asked for much more than it can do.
import assert from "node:assert/strict";
import { join } from "node:path";

import {
  expectAccessible, expectChartsToMove, expectLive, expectNoOverflow, mistakesOf, sizes,
} from "./steps.mjs";

const [playwright, axePath, executablePath, shots, application, url] = process.argv.slice(2);
const { chromium } = await import(playwright);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], timeout: 60_000 });
try {
  for (const [size, viewport] of Object.entries(sizes)) {
    const what = `flooded-${size}`;
    const context = await browser.newContext({ viewport });
    context.setDefaultTimeout(60_000);
    const page = await context.newPage();
    const mistakes = mistakesOf(page);
    await page.goto(url);
    await expectLive(page);
    await page.getByText("requests were refused in the last minute").waitFor();
    await page.locator("#admission").getByText("GET /fib/{n} by 127.0.0.1").first().waitFor();
    await expectChartsToMove(page, application);
    await page.screenshot({ path: join(shots, `${what}.png`), fullPage: true });
    await expectAccessible(page, axePath, what);
    await expectNoOverflow(page, what);
    assert.deepEqual(mistakes, [], what);
    await context.close();
  }
} finally {
  await browser.close();
}
