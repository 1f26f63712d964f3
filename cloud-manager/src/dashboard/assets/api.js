// The way to the manager: the same API as the command line, with the cookie of this session.

let csrf = "";

/** A request that was not carried out: what the manager said. */
export class Refused extends Error {
  constructor(status, document) {
    super(document?.error ?? `the manager answered with status ${status}`);
    this.status = status;
    this.problems = document?.problems ?? [];
    this.places = document?.places ?? [];
  }
}

async function answered(response) {
  if (response.status === 204) return undefined;
  const json = response.headers.get("content-type")?.startsWith("application/json");
  if (!response.ok) throw new Refused(response.status, json ? await response.json() : undefined);
  return json ? response.json() : response.text();
}

export async function get(path, options = {}) {
  return answered(await fetch(path, { credentials: "same-origin", cache: "no-store", ...options }));
}

export async function post(path, document = {}, options = {}) {
  const headers = { "content-type": "application/json", "x-holdfast-csrf": csrf };
  const body = JSON.stringify(document);
  return answered(await fetch(path, { method: "POST", credentials: "same-origin", headers, body, ...options }));
}

/** Who is logged in; fails with status 401 if nobody is. */
export async function session() {
  const found = await get("/dashboard/session");
  csrf = found.csrf;
  return found;
}

export async function logIn(secret) {
  await answered(await fetch("/dashboard/login", { method: "POST", credentials: "same-origin", body: secret }));
}

export async function logOut() {
  const headers = { "x-holdfast-csrf": csrf };
  await answered(await fetch("/dashboard/session", { method: "DELETE", credentials: "same-origin", headers }));
}
