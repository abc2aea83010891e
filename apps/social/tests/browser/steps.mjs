// The actions of users, each a function to call in one line.
import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { paint } from "./png.mjs";
import { directory } from "./world.mjs";

export const PASSWORD = "correct horse battery";

// Uses the keyboard alone.
export async function signUp({ page }, name, password = PASSWORD) {
  await page.goto("/sign-up");
  await page.locator("#name").focus();
  const { keyboard } = page;
  await keyboard.type(name);
  await keyboard.press("Tab");
  await keyboard.press("Tab");
  await keyboard.type(`${name}@example.org`);
  await keyboard.press("Tab");
  await keyboard.type(password);
  await keyboard.press("Enter");
  await page.waitForURL("/");
}

export async function logIn({ page }, name, password = PASSWORD) {
  await page.goto("/log-in");
  await page.fill("#name", name);
  await page.fill("#password", password);
  await page.getByRole("button", { name: "Log in" }).click();
}

export async function makeAlbum({ page }, title) {
  await page.goto("/albums/new");
  await page.fill("#title", title);
  await page.getByRole("button", { name: "Make it" }).click();
  await page.waitForURL(/\/albums\/[0-9a-f]{32}$/);
  return page.url();
}

let files = 0;
export function pictureFile() {
  files += 1;
  const path = join(directory, `picture-${files}.png`);
  writeFileSync(path, paint(files));
  return path;
}

export function otherFile() {
  const path = join(directory, "letter.png");
  writeFileSync(path, "Dear Sir or Madam, this is not a picture.");
  return path;
}

// Uploads on the page of an album; returns when all pictures are in it.
export async function upload({ page }, captions) {
  const before = await page.locator("#tiles .tile").count();
  await page.setInputFiles("#picture", captions.map(() => pictureFile()));
  for (const [number, caption] of captions.entries()) {
    await page.locator(".upload-caption").nth(number).fill(caption);
  }
  await page.getByRole("button", { name: "Upload" }).click();
  await page.locator("#tiles .tile").nth(before + captions.length - 1).waitFor();
}

export const cards = (page, caption) => page.locator(".card").filter({ hasText: caption });
export const tile = (page, caption) => page.locator(".tile").filter({ has: page.getByAltText(caption) });
export const likes = (within) => within.locator('[data-count="likes"]');
export const likeButton = (within) => within.getByRole("button", { name: "Like" });
export const bellNumber = (page) => page.locator("[data-bell-number]");
export const connection = (page) => page.locator("#connection");

// Opens the page of a picture, by its album.
export async function tileOf({ page }, album, caption) {
  await page.goto(album);
  await tile(page, caption).locator("a").click();
  await page.waitForURL(/\/pictures\//);
}
