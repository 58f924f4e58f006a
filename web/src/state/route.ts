// Where in the page one is: the part of the address behind `#`, which no server sees.

export type Tab = "team" | "messages" | "files" | "network" | "numbers";

export type Route =
  | { page: "sessions" }
  | { page: "new" }
  | { page: "approvals" }
  | { page: "server" }
  | { page: "session"; id: string; tab: Tab; agent: string | null; file: string }
  | { page: "nowhere" };

const TABS: readonly string[] = ["team", "messages", "files", "network", "numbers"];
const PLAIN: Record<string, Route> = {
  "": { page: "sessions" },
  new: { page: "new" },
  approvals: { page: "approvals" },
  server: { page: "server" },
};

export function parseRoute(hash: string): Route {
  const [first = "", id = "", tab = "team", ...rest] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (first !== "sessions") return id === "" ? (PLAIN[first] ?? { page: "nowhere" }) : { page: "nowhere" };
  if (!id || !TABS.includes(tab)) return { page: "nowhere" };
  const agent = tab === "team" ? (rest[0] ?? null) : null;
  return { page: "session", id, tab: tab as Tab, agent, file: tab === "files" ? rest.join("/") : "" };
}

/** Whether an address names a session by its id. Anything else is a name, which the server knows the id of. */
export function isId(word: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(word);
}

/** The same place, of the session whose id is known now. */
export function withId(hash: string, id: string): string {
  const [, ...rest] = hash.replace(/^#\/?sessions\//, "").split("/");
  return ["#/sessions", id, ...rest].join("/");
}

export function sessionHref(id: string, tab: Tab = "team", rest = ""): string {
  const more = rest.split("/").map(encodeURIComponent).join("/");
  return `#/sessions/${id}${tab === "team" && !rest ? "" : `/${tab}`}${rest ? `/${more}` : ""}`;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
