// Calls of the JSON API, and why one was refused, in words for people.

const csrf = document.querySelector('meta[name="csrf-token"]')?.content ?? "";
export const me = document.querySelector('meta[name="viewer"]')?.content ?? null;

export class Rejection extends Error {
  // `status` is 0 if there was no response; `retryAfter` is in seconds, null if the server says nothing of it.
  constructor(status, words, retryAfter = null) {
    super(words);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export const headers = () => ({ accept: "application/json", "x-csrf-token": csrf });

export async function call(method, path, body) {
  const request = { method, headers: headers(), credentials: "same-origin" };
  if (body !== undefined) {
    request.headers["content-type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new Rejection(0, "There is no connection to the server.");
  }
  const text = await response.text();
  if (!response.ok) throw rejection(response.status, text, response.headers.get("retry-after"));
  return text ? JSON.parse(text) : null;
}

export function rejection(status, text, retryAfter) {
  const seconds = Number.parseInt(retryAfter ?? "", 10);
  const wait = Number.isFinite(seconds) ? Math.max(1, seconds) : null;
  return new Rejection(status, words(status, detail(text), wait), wait);
}

function detail(text) {
  try {
    return JSON.parse(text).detail ?? "";
  } catch {
    return "";
  }
}

function words(status, said, wait) {
  const later = wait === null ? "in a moment" : `in ${wait} second${wait === 1 ? "" : "s"}`;
  switch (status) {
    case 401: return "You are no longer logged in. Log in and try again.";
    case 404: return "This is no longer there.";
    case 429: return `That was too much at once. Try again ${later}.`;
    case 503: return `The server is busy. Try again ${later}.`;
    default: return said ? sentence(said) : "Something went wrong at the server.";
  }
}

function sentence(text) {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(capital) ? capital : `${capital}.`;
}
