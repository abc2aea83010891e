// How pages look: to who cannot see them, on a telephone, and in the dark. Pages are the same on all
// deployments, so that one tour looks at them.
import { expectAccessible, expectMistakes, expectNoSidewaysScroll, expectWhole, person, shoot } from "./world.mjs";
import { logIn, tile, tileOf } from "./steps.mjs";

export const looks = {
  async "no page is wrong for who cannot see it"(ada, album) {
    await tileOf(ada, album, "The first disc");
    const picture = ada.page.url();
    for (const colorScheme of ["light", "dark"]) {
      await ada.page.emulateMedia({ colorScheme });
      for (const path of ["/", "/api", "/albums/new", "/users/ada", "/settings", "/bell", album, picture]) {
        await ada.page.goto(path);
        await expectAccessible(ada.page);
      }
      await ada.page.locator("summary", { hasText: "Delete" }).click();
      await expectAccessible(ada.page);
      await ada.page.goto("/api");
      await shoot(ada.page, `api-${colorScheme}`);
    }
    await ada.page.emulateMedia({ colorScheme: "light" });
  },

  async "on a telephone, light and dark"(ada, album) {
    for (const colorScheme of ["light", "dark"]) {
      const options = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, deviceScaleFactor: 2, colorScheme };
      const phone = await person(ada.replica, options);
      await phone.page.goto("/");
      await expectNoSidewaysScroll(phone.page);
      await shoot(phone.page, `phone-${colorScheme}-welcome`);
      await logIn(phone, "ada");
      await phone.page.waitForURL("/");
      for (const [name, path] of Object.entries({ timeline: "/", album, profile: "/users/ada", settings: "/settings", account: "/settings/account", bell: "/bell", api: "/api" })) {
        await phone.page.goto(path);
        await expectNoSidewaysScroll(phone.page);
        await shoot(phone.page, `phone-${colorScheme}-${name}`);
      }
      await phone.page.goto(album);
      await tile(phone.page, "The first disc").locator("a").tap();
      await phone.page.waitForURL(/\/pictures\//);
      await expectNoSidewaysScroll(phone.page);
      await shoot(phone.page, `phone-${colorScheme}-picture`);
      await phone.page.locator("summary", { hasText: "Delete" }).tap();
      await expectWhole(phone.page.locator(".sure-box").filter({ hasText: "Delete this picture?" }));
      await shoot(phone.page, `phone-${colorScheme}-delete`);
      expectMistakes(phone);
      await phone.context.close();
    }
  },

  async "on a desk, in the dark"(ada, album) {
    await ada.page.emulateMedia({ colorScheme: "dark" });
    for (const [name, path] of Object.entries({ timeline: "/", album, settings: "/settings" })) {
      await ada.page.goto(path);
      await shoot(ada.page, `dark-${name}`);
    }
    await tileOf(ada, album, "The first disc");
    await shoot(ada.page, "dark-picture");
  },
};
