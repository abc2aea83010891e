// How people are shown: as the server does it in `Shell::tint` and `Shell::initial`.

const TINTS = 6;

export function showPerson(root, name) {
  const avatar = root.querySelector(".avatar");
  avatar.textContent = name.charAt(0).toUpperCase();
  const sum = [...new TextEncoder().encode(name)].reduce((total, byte) => total + byte, 0);
  avatar.className = avatar.className.replace(/tint-\d/, `tint-${sum % TINTS}`);
  for (const shown of root.querySelectorAll(".who-name")) shown.textContent = name;
  for (const link of root.querySelectorAll('a[href^="/users/"]')) link.href = `/users/${name}`;
}
