// The way to the server. Before anything else is sent the server proves that it is the one this browser signed in to;
// then the page proves itself and gets a bearer, which is kept in memory only.
//
// Both know a secret that is never sent: the code of a sign-in link, once; then the browser's key, which no script can
// read. Neither is worth anything to a program that took the server's port.

import { Problem, type Fetch } from "./api.ts";
import type { Link } from "./feed.ts";
import type { Greeting, PageAccess, Ticket } from "./shapes.ts";

/** A key of this browser, for one server at this address. */
export interface Key {
  name: string;
  secret: CryptoKey;
}

/** Where keys are kept: the tabs of a browser have the same. */
export interface Keys {
  /** The newest first. */
  all(): Promise<Key[]>;
  put(key: Key): Promise<void>;
  remove(name: string): Promise<void>;
}

// A server that has proven itself this long ago has to do it again: another program may have its port by now.
const FRESH = 30_000;
const PATIENCE = 20_000;
// A bearer is renewed this long before its end.
const SPARE = 180_000;

const STRANGER = "stranger";

export class Door {
  private shut: Problem | null = null;
  private provenAt = 0;
  private bearer: { text: string; name: string; until: number } | null = null;
  private opening: Promise<string> | null = null;
  /** Whether the page was opened with a sign-in link that is good no longer. */
  isLinkUsed = false;

  constructor(
    private readonly net: Fetch,
    private readonly keys: Keys,
    private readonly host: string,
    private code: string | null = null,
  ) {}

  /** Whether this browser can keep a key here: only at addresses that nobody on the way can change. */
  static get isPossible(): boolean {
    return (globalThis.crypto as Crypto | undefined)?.subtle !== undefined;
  }

  /** A call with the bearer; one more if the server does not know it any more. */
  readonly fetch: Fetch = async (where, init = {}) => {
    for (let isSecond = false; ; isSecond = true) {
      const bearer = await this.open();
      const answer = await this.send(where, { ...init, headers: { ...init.headers, Authorization: `Bearer ${bearer}` } });
      if (answer.status !== 401 || isSecond) return answer;
      this.doubt();
    }
  };

  /** Something that opens `target` once: for what a browser opens without our headers. */
  async ticket(target: string): Promise<string> {
    const answer = await this.fetch("/browser/ticket", json({ target }));
    if (!answer.ok) throw new Problem(answer.status, "refused", "The server gave no ticket");
    return ((await answer.json()) as Ticket).ticket;
  }

  /** Forget the key, at the server and here. */
  async signOut(): Promise<void> {
    await this.open();
    const name = this.bearer?.name ?? "";
    const answer = await this.fetch("/logout", { method: "POST" });
    if (!answer.ok && answer.status !== 401) throw new Problem(answer.status, "refused", `The server answered ${answer.status}`);
    await this.keys.remove(name);
    this.doubt();
  }

  /** The connection broke: whoever answers next has to prove itself. */
  doubt(): void {
    this.provenAt = 0;
    this.bearer = null;
  }

  /** How it is with the stream of events, in whichever tab reads it. */
  heard(link: Link): void {
    if (link === "reconnecting") this.doubt();
    // A tab that goes on has asked the server to prove itself; so will this one.
    this.shut = link === STRANGER ? (this.shut ?? stranger()) : null;
  }

  /** Somebody asks to try again. */
  again(): void {
    this.shut = null;
    this.isLinkUsed = false;
    this.doubt();
  }

  /** The bearer, of a server that has proven itself just now. */
  async open(): Promise<string> {
    if (this.shut) throw this.shut;
    const now = Date.now();
    if (this.bearer && now - this.provenAt < FRESH && now < this.bearer.until) return this.bearer.text;
    this.opening ??= this.prove().finally(() => {
      this.opening = null;
    });
    return this.opening;
  }

  /** Nothing but a nonce and the names of keys is sent before the server has proven itself. */
  private async prove(): Promise<string> {
    const known = await this.keys.all();
    const code = this.code === null ? null : await keyOf(this.code);
    const all = code ? [code, ...known] : known;
    if (all.length === 0) throw signedOut();
    const nonce = hex(crypto.getRandomValues(new Uint8Array(16)));
    const { challenge, proofs } = await this.hello(nonce, all);
    const key = await this.proven(all, proofs, `${this.host} ${nonce} ${challenge}`);
    if (code && key !== code) {
      this.code = null;
      this.isLinkUsed = !key;
      if (!key) throw signedOut();
    }
    if (!key) throw (this.shut = stranger());
    this.provenAt = Date.now();
    if (this.bearer?.name === key.name && this.provenAt < this.bearer.until) return this.bearer.text;
    return this.enter(key, nonce, challenge);
  }

  private async hello(nonce: string, keys: Key[]): Promise<Greeting> {
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await this.send("/browser/hello", { ...json({ nonce, keys: keys.map((key) => key.name) }), signal });
    // A proxy whose server is away, or a server that is asked too often.
    if (answer.status === 429 || answer.status >= 502) throw new Problem(answer.status, "unreachable", "The server does not answer", "mas serve");
    // A connection that breaks here proves nothing, neither way.
    const text = await answer.text();
    try {
      const { challenge, proofs } = JSON.parse(text) as Greeting;
      if (answer.ok && typeof challenge === "string" && Array.isArray(proofs)) return { challenge, proofs };
    } catch {
      // It is no server of ours.
    }
    return { challenge: "", proofs: [] };
  }

  private async proven(keys: Key[], proofs: string[], words: string): Promise<Key | undefined> {
    for (const [number, key] of keys.entries()) {
      if (proofs[number] === (await sign(key.secret, `server ${key.name} ${words}`))) return key;
    }
    return undefined;
  }

  /** The server has proven itself: now the page does. */
  private async enter(key: Key, nonce: string, challenge: string): Promise<string> {
    const proof = await sign(key.secret, `page ${key.name} ${this.host} ${nonce} ${challenge}`);
    const answer = await this.send("/browser/bearer", json({ key: key.name, nonce, challenge, proof }));
    const isCode = this.code !== null;
    this.code = null;
    if (answer.status === 401) {
      await this.keys.remove(key.name);
      // Another tab may have been faster with the same link.
      if (isCode) return this.prove();
      throw signedOut();
    }
    if (!answer.ok) throw new Problem(answer.status, "refused", `The server answered ${answer.status}`, "mas doctor");
    const given = (await answer.json()) as PageAccess;
    const made = given.key && { name: given.key.name, secret: await unsealed(key, given.key.sealed, challenge) };
    if (made) await this.keys.put(made);
    this.bearer = { text: given.bearer, name: made?.name ?? key.name, until: Date.now() + given.seconds * 1000 - SPARE };
    return given.bearer;
  }

  private async send(where: string, init: RequestInit): Promise<Response> {
    try {
      return await this.net(where, { credentials: "omit", cache: "no-store", ...init });
    } catch (error) {
      if (!init.signal?.aborted) this.doubt();
      throw error;
    }
  }
}

function signedOut(): Problem {
  return new Problem(401, "unauthorized", "This browser is not signed in", "mas url");
}

function stranger(): Problem {
  return new Problem(0, STRANGER, "This is not your MAS", "mas url");
}

function json(body: unknown): RequestInit {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

/** The key of a code: named without showing it. */
async function keyOf(code: string): Promise<Key> {
  const secret = await imported(code);
  return { name: (await sign(secret, "name")).slice(0, 32), secret };
}

/** The browser's key, out of what only the code of the link opens. */
async function unsealed(code: Key, sealed: string, challenge: string): Promise<CryptoKey> {
  const seal = BigInt(`0x${await sign(code.secret, `seal ${challenge}`)}`);
  return imported((BigInt(`0x${sealed}`) ^ seal).toString(16).padStart(64, "0"));
}

/** Not extractable: it can be used, by this origin, and never be read. */
function imported(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

async function sign(secret: CryptoKey, words: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.sign("HMAC", secret, new TextEncoder().encode(words))));
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
