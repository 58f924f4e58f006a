// Ports inside a session's network, as programs print them.

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\])$/;

export interface Inside {
  port: number;
  /** The path, query and fragment, without the first slash. */
  rest: string;
}

/** The port of the session that an address means, if it is one of loopback: to an agent that is its own machine. */
export function insideOf(address: string): Inside | null {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return null;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return null;
  if (!LOOPBACK.test(url.hostname)) return null;
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  return { port, rest: `${url.pathname}${url.search}${url.hash}`.slice(1) };
}
