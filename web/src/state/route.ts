// Where in the page one is: the part of the address behind `#`, which no server sees.

export type Tab = "team" | "messages" | "files" | "numbers";

export type Route =
  | { page: "sessions" }
  | { page: "new" }
  | { page: "approvals" }
  | { page: "server" }
  | { page: "session"; id: string; tab: Tab; agent: string | null; file: string }
  | { page: "nowhere" };

const TABS: readonly string[] = ["team", "messages", "files", "numbers"];
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
