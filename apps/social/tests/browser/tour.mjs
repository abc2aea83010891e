// Two users look at the network at the same time. Each sees the other's actions without a reload,
// also after a lost connection; rejections are explained in words; and all of it works with a
// keyboard and without scripts.
import assert from "node:assert/strict";
import {
  browser, expectMistakes, expectNoReload, expectText, expectWhole, isShared, mark, order, person, replicas, say, shoot,
  untilItResponds,
} from "./world.mjs";
import { looks } from "./looks.mjs";
import {
  PASSWORD, bellNumber, cards, connection, likeButton, likes, logIn, makeAlbum, otherFile, pictureFile, signUp, tile, tileOf,
  upload,
} from "./steps.mjs";

const OUTAGE = [/WebSocket connection/, /ERR_CONNECTION_REFUSED/, /ERR_CONNECTION_RESET/, /ERR_INTERNET_DISCONNECTED/, /ERR_NETWORK_CHANGED/, /ERR_EMPTY_RESPONSE/];
const first = replicas[0];
const last = replicas.at(-1);

await Promise.all(replicas.map(untilItResponds));
const ada = await person(first);
const grace = await person(last);
let album;

const scenes = {
  async "a mistake in a form is shown beside its field, and what was entered is kept"() {
    await ada.page.goto("/sign-up");
    await shoot(ada.page, "sign-up");
    await ada.page.locator("form.form").evaluate((form) => { form.noValidate = true; });
    await ada.page.fill("#name", "ada");
    await ada.page.fill("#email", "ada@example.org");
    await ada.page.fill("#password", "short");
    await ada.page.getByRole("button", { name: "Sign up" }).click();
    await expectText(ada.page.locator("#password-error"), /10 to 200 characters/);
    assert.equal(await ada.page.inputValue("#email"), "ada@example.org");
    await shoot(ada.page, "sign-up-mistake");
    expectMistakes(ada, /status of 422/);
  },

  async "signing up, with the keyboard alone"() {
    await signUp(ada, "ada");
    await signUp(grace, "grace");
    await ada.page.keyboard.press("Tab");
    assert.equal(await ada.page.evaluate(() => document.activeElement.textContent), "Skip to the content");
    await ada.page.keyboard.press("Enter");
    assert.equal(await ada.page.evaluate(() => document.activeElement.id), "main");
  },

  async "a name that is taken, and a wrong password"() {
    const other = await person(last);
    await other.page.goto("/sign-up");
    await other.page.fill("#name", "Ada");
    await other.page.fill("#email", "other@example.org");
    await other.page.fill("#password", PASSWORD);
    await other.page.getByRole("button", { name: "Sign up" }).click();
    await other.page.locator("#name-error").waitFor();
    await logIn(other, "ada", "wrong horse battery");
    await expectText(other.page.getByRole("alert"), /password is wrong/);
    await shoot(other.page, "log-in-mistake");
    expectMistakes(other, /status of 409/, /status of 401/);
    await other.context.close();
  },

  async "pictures are uploaded, and one that is none is refused in words"() {
    album = await makeAlbum(ada, "Stripes");
    await grace.page.goto("/");
    await mark(grace.page);
    await ada.page.setInputFiles("#picture", [pictureFile(), otherFile()]);
    await ada.page.locator(".upload-caption").first().fill("The first disc");
    await shoot(ada.page, "upload-chosen");
    await ada.page.getByRole("button", { name: "Upload" }).click();
    await tile(ada.page, "The first disc").waitFor();
    await expectText(ada.page.locator('.upload-item[data-state="failed"] .upload-words'), /no picture/);
    await shoot(ada.page, "upload-refused");
    expectMistakes(ada, /status of 415/);
  },

  async "the other one sees the picture without a reload"() {
    await cards(grace.page, "The first disc").waitFor();
    assert.equal(await cards(grace.page, "The first disc").count(), 1);
    await expectNoReload(grace.page);
  },

  async "who reads further down is told of new pictures, and not moved"() {
    await ada.page.goto(album);
    await upload(ada, ["The second disc", "The third disc"]);
    await cards(grace.page, "The third disc").waitFor();
    await grace.page.evaluate(() => window.scrollTo(0, 600));
    await upload(ada, ["The fourth disc"]);
    await expectText(grace.page.locator("#news"), "1 new picture");
    assert.equal(await cards(grace.page, "The fourth disc").count(), 0);
    await shoot(grace.page, "timeline-news");
    await grace.page.locator("#news").press("Enter");
    await cards(grace.page, "The fourth disc").waitFor();
    await grace.page.waitForFunction(() => window.scrollY === 0);
    await shoot(grace.page, "timeline");
    await expectNoReload(grace.page);
  },

  async "likes move in both browsers, and so does the owner's bell"() {
    await ada.page.goto("/");
    await mark(ada.page);
    const [hers, mine] = [grace.page, ada.page].map((page) => cards(page, "The first disc"));
    await likeButton(hers).press("Space");
    await expectText(likes(hers), "1");
    await expectText(likes(mine), "1");
    await expectText(bellNumber(ada.page), "1");
    await likeButton(mine).click();
    await expectText(likes(hers), "2");
    await likeButton(hers).click();
    await expectText(likes(hers), "1");
    await expectText(likes(mine), "1");
    assert.equal(await likeButton(hers).getAttribute("aria-pressed"), "false");
    await likeButton(hers).click();
    await expectText(likes(mine), "2");
    // A repeated like is no news.
    await expectText(bellNumber(ada.page), "1");
    await expectNoReload(ada.page);
  },

  async "comments come and go in both browsers"() {
    await cards(grace.page, "The first disc").locator(".frame").click();
    await grace.page.waitForURL(/\/pictures\//);
    await ada.page.goto(grace.page.url());
    await mark(ada.page);
    await grace.page.fill("#text", "Which colour is that?\n<b>Really</b> & truly?");
    await grace.page.keyboard.press("Control+Enter");
    await expectText(ada.page.locator(".comment-text"), /<b>Really<\/b> & truly/);
    await ada.page.fill("#text", "I would call it stripes.");
    await ada.page.getByRole("button", { name: "Comment", exact: true }).click();
    await expectText(grace.page.locator(".comment").nth(1), /stripes/);
    await expectText(grace.page.locator("#comments .number"), "2");
    await shoot(grace.page, "picture");
    await ada.page.getByRole("button", { name: "Delete the comment by ada" }).click();
    await expectText(grace.page.locator("#comments .number"), "1");
    assert.equal(await grace.page.locator(".comment").count(), 1);
    await expectNoReload(ada.page);
  },

  async "what is typed while a comment is sent is kept, and the focus stays"() {
    const comments = "**/api/pictures/*/comments";
    let haveTyped;
    const typed = new Promise((resolve) => { haveTyped = resolve; });
    await ada.page.route(comments, async (route) => {
      await typed;
      await route.continue();
    });
    await ada.page.fill("#text", "First,");
    await ada.page.locator("#text").press("Control+Enter");
    await ada.page.locator("#say button:disabled").waitFor();
    await ada.page.locator("#text").pressSequentially(" second");
    await ada.page.locator('a[href="/bell"]').focus();
    haveTyped();
    await expectText(ada.page.locator(".comment-text"), "First,");
    await ada.page.locator("#say button:enabled").waitFor();
    assert.equal(await ada.page.inputValue("#text"), "First, second");
    assert.equal(await ada.page.evaluate(() => document.activeElement.getAttribute("href")), "/bell");
    await ada.page.unroute(comments);
    await ada.page.fill("#text", "Third");
    await ada.page.getByRole("button", { name: "Comment", exact: true }).click();
    await expectText(ada.page.locator(".comment-text"), "Third");
    await ada.page.locator("#say button:enabled").waitFor();
    assert.equal(await ada.page.inputValue("#text"), "");
    assert.equal(await ada.page.evaluate(() => document.activeElement.id), "text");
    for (const text of ["First,", "Third"]) {
      const said = ada.page.locator(".comment").filter({ hasText: text });
      await said.getByRole("button", { name: "Delete the comment by ada" }).click();
      await said.waitFor({ state: "detached" });
    }
  },

  async "the bell's list, and that it was seen"() {
    await ada.page.locator('a[href="/bell"]').click();
    await expectText(ada.page.locator(".bell-entry").first(), /grace said something about your picture/);
    assert.equal(await ada.page.locator(".bell-entry").count(), 2);
    await ada.page.locator("[data-bell]").waitFor({ state: "hidden" });
    await shoot(ada.page, "bell");
    await ada.page.reload();
    await ada.page.locator("[data-bell]").waitFor({ state: "hidden" });
  },

  async "what is done without a connection is taken back, and said"() {
    await grace.page.goto("/");
    await mark(grace.page);
    const card = cards(grace.page, "The second disc");
    await card.waitFor();
    await grace.context.setOffline(true);
    await expectText(connection(grace.page), /connection is gone/);
    await likeButton(card).click();
    await expectText(grace.page.locator(".notice"), /no connection/);
    await expectText(likes(card), "0");
    assert.equal(await likeButton(card).getAttribute("aria-pressed"), "false");
    await shoot(grace.page, "connection-gone");
    await ada.page.goto(album);
    await upload(ada, ["While grace was away"]);
    await likeButtonOf(ada, "The second disc");
    await grace.context.setOffline(false);
    await expectText(connection(grace.page), /connection is back/);
    await expectText(likes(card), "1");
    await takeNews(grace.page);
    await cards(grace.page, "While grace was away").waitFor();
    assert.equal(await cards(grace.page, "While grace was away").count(), 1);
    await grace.page.locator(".notice").getByRole("button", { name: "Try again" }).click();
    await expectText(likes(card), "2");
    await shoot(grace.page, "connection-back");
    await expectNoReload(grace.page);
    expectMistakes(grace, ...OUTAGE);
  },

  async "a server that is killed and comes back loses nothing, and repeats nothing"() {
    await mark(grace.page);
    await order("kill", last);
    await expectText(connection(grace.page), /connection is gone/);
    if (isShared) {
      await upload(ada, ["While the replica was dead"]);
      await likeButtonOf(ada, "The third disc");
    }
    await order("start", last);
    await untilItResponds(last);
    await expectText(connection(grace.page), /connection is back/);
    if (!isShared) {
      await ada.page.goto(album);
      await upload(ada, ["While the replica was dead"]);
      await likeButtonOf(ada, "The third disc");
    }
    await cards(grace.page, "While the replica was dead").waitFor();
    await expectText(likes(cards(grace.page, "The third disc")), "1");
    assert.equal(await cards(grace.page, "While the replica was dead").count(), 1);
    await expectNoReload(grace.page);
    expectMistakes(grace, ...OUTAGE);
    expectMistakes(ada, ...OUTAGE);
  },

  async "settings, and a key that is shown once"() {
    await ada.page.goto("/settings");
    await ada.page.fill("#about", "Counts stripes.");
    await ada.page.getByRole("button", { name: "Save" }).click();
    await expectText(ada.page.locator(".alert.good"), /Saved/);
    await ada.page.fill("#key-name", "my program");
    await ada.page.getByRole("button", { name: "Make a key" }).click();
    await expectText(ada.page.locator(".key code").nth(1), /^[0-9a-f]{64}$/);
    await shoot(ada.page, "settings");
    await ada.page.goto("/settings");
    assert.equal(await ada.page.locator(".key").count(), 0);
    await ada.page.goto("/users/ada");
    await expectText(ada.page.locator(".about"), /Counts stripes/);
    await shoot(ada.page, "profile");
  },

  async "who logs out in one window is logged out in the others, and the way back shows nothing"() {
    const eve = await person(last);
    await signUp(eve, "eve");
    const other = await eve.context.newPage();
    await other.goto("/settings");
    await mark(other);
    await eve.page.goto("/settings/account");
    await eve.page.getByRole("button", { name: "Log out", exact: true }).click();
    await eve.page.getByRole("link", { name: "Log in" }).first().waitFor();
    await expectText(connection(other), /no longer logged in/);
    await expectNoReload(other);
    await shoot(other, "logged-out-elsewhere");
    await eve.page.goBack();
    await eve.page.waitForURL(/\/log-in\?next=/);
    expectMistakes(eve);
    await eve.context.close();
  },

  async "another password, and a mistake on the way"() {
    const eve = await person(first);
    const elsewhere = await person(last);
    for (const somebody of [eve, elsewhere]) {
      await logIn(somebody, "eve");
      await somebody.page.waitForURL("/");
    }
    await eve.page.goto("/settings");
    await eve.page.getByRole("link", { name: "To the account" }).click();
    await shoot(eve.page, "account");
    await eve.page.fill("#old", "wrong horse battery");
    await eve.page.fill("#new", "purple donkey capacitor");
    await eve.page.getByRole("button", { name: "Change the password" }).click();
    await expectText(eve.page.locator("#old-error"), /not your password/);
    assert.equal(await eve.page.evaluate(() => document.activeElement.id), "old");
    await shoot(eve.page, "account-mistake");
    expectMistakes(eve, /status of 422/);
    await eve.page.fill("#old", PASSWORD);
    await eve.page.fill("#new", "purple donkey capacitor");
    await eve.page.getByRole("button", { name: "Change the password" }).click();
    await expectText(eve.page.getByRole("status").first(), /password is changed/);
    await shoot(eve.page, "account-saved");
    await expectText(connection(elsewhere.page), /no longer logged in/);
    await elsewhere.page.getByRole("link", { name: "Load the page again" }).click();
    await elsewhere.page.getByRole("link", { name: "Log in" }).first().waitFor();
    expectMistakes(elsewhere);
    await elsewhere.context.close();
    await eve.context.close();
  },

  async "a forgotten password, and a link that is no good"() {
    const eve = await person(first);
    await eve.page.goto("/log-in");
    await eve.page.getByRole("link", { name: "Forgotten your password?" }).click();
    await shoot(eve.page, "forgot");
    await eve.page.fill("#email", "eve@example.org");
    await eve.page.getByRole("button", { name: "Send me a link" }).click();
    await expectText(eve.page.locator("h1"), "Look into your mails");
    await shoot(eve.page, "forgot-sent");
    await eve.page.goto(`/reset-password?token=${"x".repeat(43)}`);
    await expectText(eve.page.getByRole("alert"), /too old/);
    await shoot(eve.page, "reset-refused");
    expectMistakes(eve, /status of 422/);
    await eve.context.close();
  },

  async "who deletes their account is gone from open pages"() {
    const eve = await person(first);
    await logIn(eve, "eve", "purple donkey capacitor");
    await eve.page.waitForURL("/");
    await grace.page.goto("/");
    const [hers, seen] = [eve.page, grace.page].map((page) => cards(page, "The first disc"));
    const before = Number(await likes(seen).textContent());
    await likeButton(hers).click();
    await expectText(likes(seen), String(before + 1));
    await eve.page.goto("/settings/account");
    await eve.page.fill("#delete_password", "purple donkey capacitor");
    await eve.page.getByRole("button", { name: "Delete my account for good" }).click();
    await expectText(eve.page.locator("h1"), "Your account is deleted");
    await shoot(eve.page, "deleted");
    await expectText(likes(seen), String(before));
    expectMistakes(eve);
    await eve.context.close();
  },

  async "what is not there or not allowed is a page too"() {
    await grace.page.goto("/pictures/nothing");
    await expectText(grace.page.locator("h1"), /not here/);
    await shoot(grace.page, "error");
    const response = await grace.context.request.post(`${album}/delete`.replace(first.address, last.address), { form: { csrf: "wrong" } });
    assert.equal(response.status(), 403);
    assert.match(await response.text(), /<h1>You may not do this<\/h1>/);
    const policy = response.headers()["content-security-policy"];
    assert.match(policy, /default-src 'self'/);
    assert.doesNotMatch(policy, /unsafe/);
    expectMistakes(grace, /status of 404/);
  },

  async "without scripts"() {
    const plain = await person(first, { javaScriptEnabled: false });
    await plain.page.goto("/settings");
    await plain.page.waitForURL(/\/log-in\?next=/);
    await plain.page.fill("#name", "ada");
    await plain.page.fill("#password", PASSWORD);
    await plain.page.getByRole("button", { name: "Log in" }).click();
    await plain.page.waitForURL("/settings");
    await plain.page.goto(album);
    await plain.page.setInputFiles("#picture", otherFile());
    await plain.page.getByRole("button", { name: "Upload" }).click();
    await expectText(plain.page.locator("#picture-error"), /no picture/);
    await plain.page.setInputFiles("#picture", pictureFile());
    await plain.page.fill("#caption", "By hand");
    await plain.page.getByRole("button", { name: "Upload" }).click();
    await tile(plain.page, "By hand").locator("a").click();
    await plain.page.fill("#text", "No script was needed.");
    await plain.page.getByRole("button", { name: "Comment", exact: true }).click();
    await expectText(plain.page.locator(".comment-text"), /No script/);
    await likeButton(plain.page).click();
    await expectText(likes(plain.page), "1");
    await plain.page.getByRole("button", { name: "Log out" }).click();
    await plain.page.getByRole("link", { name: "Log in" }).first().waitFor();
    await shoot(plain.page, "without-scripts");
    await plain.context.close();
  },

  async "what a picture shows is said in words"() {
    await tileOf(ada, album, "By hand");
    await ada.page.locator("summary", { hasText: "Describe" }).click();
    await expectWhole(ada.page.locator(".sure-box").filter({ hasText: "What it shows" }));
    await ada.page.fill("#alt", "A green disc on stripes");
    await shoot(ada.page, "describe");
    await ada.page.getByRole("button", { name: "Save" }).click();
    await ada.page.locator('.stage img[alt="A green disc on stripes"]').waitFor();
    await ada.page.goto(album);
    await ada.page.setInputFiles("#picture", pictureFile());
    await ada.page.locator(".upload-caption").fill("With words");
    await ada.page.locator(".upload-alt").fill("A disc that somebody has described");
    await shoot(ada.page, "upload-words");
    await ada.page.getByRole("button", { name: "Upload" }).click();
    await tile(ada.page, "A disc that somebody has described").waitFor();
    await expectText(ada.page.locator(".upload .hint", { hasText: "You use" }), /of 20\.0 GiB, and \d+ of 20000 pictures/);
  },

  async "deleting, with the keyboard alone"() {
    await grace.page.goto("/");
    await mark(grace.page);
    await cards(grace.page, "By hand").waitFor();
    await ada.page.goto(album);
    await tile(ada.page, "A green disc on stripes").locator("a").press("Enter");
    await ada.page.waitForURL(/\/pictures\//);
    const summary = ada.page.locator("summary", { hasText: "Delete" });
    await summary.press("Enter");
    await ada.page.getByRole("button", { name: "Yes, delete it" }).waitFor();
    await expectWhole(ada.page.locator(".sure-box").filter({ hasText: "Delete this picture?" }));
    await shoot(ada.page, "delete");
    await ada.page.keyboard.press("Escape");
    await ada.page.getByRole("button", { name: "Yes, delete it" }).waitFor({ state: "hidden" });
    await summary.press("Enter");
    await ada.page.getByRole("button", { name: "Yes, delete it" }).press("Enter");
    await ada.page.waitForURL(album);
    assert.equal(await tile(ada.page, "A green disc on stripes").count(), 0);
  },

  async "what is deleted leaves open pages"() {
    await cards(grace.page, "By hand").waitFor({ state: "detached" });
    const other = await makeAlbum(ada, "For a moment");
    await upload(ada, ["Gone with its album"]);
    await cards(grace.page, "Gone with its album").waitFor();
    await ada.page.goto(other);
    await ada.page.locator("summary", { hasText: "Delete" }).click();
    await expectWhole(ada.page.locator(".sure-box"));
    await ada.page.getByRole("button", { name: "Yes, delete the album" }).click();
    await cards(grace.page, "Gone with its album").waitFor({ state: "detached" });
    await expectNoReload(grace.page);
  },

  async "a list that has grown in an open page links to older pictures"() {
    await makeAlbum(ada, "Many");
    await upload(ada, ["The oldest"]);
    await upload(ada, ["The second"]);
    const older = ada.page.locator("#older");
    assert(!await older.isVisible());
    // A page shows sixty.
    await ada.page.locator("#tiles").evaluate((tiles) => {
      while (tiles.children.length < 60) tiles.prepend(tiles.firstElementChild.cloneNode(true));
    });
    await ada.page.setInputFiles("#picture", pictureFile());
    await ada.page.locator(".upload-caption").fill("The newest");
    await ada.page.getByRole("button", { name: "Upload" }).click();
    await tile(ada.page, "The oldest").waitFor({ state: "detached" });
    await older.click();
    await ada.page.waitForURL(/before=/);
    await tile(ada.page, "The oldest").waitFor();
    assert.equal(await ada.page.locator("#tiles .tile").count(), 1);
  },
};

// A user with the keyboard's focus among the pictures is notified of new ones, and not moved.
async function takeNews(page) {
  await expectText(page.locator("#news"), "1 new picture");
  await page.locator("#news").press("Enter");
}

async function likeButtonOf(somebody, caption) {
  await tileOf(somebody, album, caption);
  await likeButton(somebody.page).click();
  await expectText(likes(somebody.page), "1");
  await somebody.page.goto(album);
}

for (const [name, scene] of Object.entries(isShared ? { ...scenes, ...looks } : scenes)) {
  const begin = Date.now();
  await scene(ada, album).catch(async (error) => {
    say(`FAILED: ${name}`);
    for (const [who, { page, mistakes }] of Object.entries({ ada, grace })) {
      say(`${who} is at ${page.url()}; complaints: ${JSON.stringify(mistakes)}`);
      await shoot(page, `failed-${who}`).catch(() => null);
    }
    throw error;
  });
  expectMistakes(ada);
  expectMistakes(grace);
  say(`${((Date.now() - begin) / 1000).toFixed(1)} s  ${name}`);
}
await browser.close();
process.exit(0);
