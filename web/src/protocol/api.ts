// Calls to the API. A refusal is a `Problem`; no answer at all is one too, with the code `unreachable`.

export interface FieldError {
  where: string;
  what: string;
}

export type Out = "signed-out" | "stranger";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly hint = "",
    readonly errors: FieldError[] = [],
  ) {
    super(detail);
    this.name = "Problem";
  }

  /** Whether nothing more can be asked for: the browser has to sign in (again), or this is not its server. */
  get out(): Out | null {
    return this.status === 401 ? "signed-out" : this.code === "stranger" ? "stranger" : null;
  }

  /** Whether the same call may succeed later, with nothing changed. */
  get mayPass(): boolean {
    return this.code === "unreachable" || this.status === 429 || this.status === 502 || this.status === 503;
  }
}

export type Fetch = (input: string, init?: RequestInit) => Promise<Response>;
type Query = Record<string, string | number | undefined>;

/** A path with values filled in safely: `path\`/sessions/${id}\``. */
export function path(words: TemplateStringsArray, ...values: string[]): string {
  return words.reduce((made, word, number) => made + encodeURIComponent(values[number - 1] ?? "") + word);
}

export class Api {
  constructor(
    private readonly fetching: Fetch,
    private readonly signedOut: (why: Out) => void = () => undefined,
  ) {}

  get<T>(where: string, query: Query = {}): Promise<T> {
    return this.json<T>(where + asked(query));
  }

  post<T>(where: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const kind: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
    return this.json<T>(where, { method: "POST", headers: { ...kind, ...headers }, ...sent });
  }

  delete<T>(where: string): Promise<T> {
    return this.json<T>(where, { method: "DELETE" });
  }

  async text(where: string, query: Query = {}): Promise<string> {
    return (await this.call(where + asked(query))).text();
  }

  /** Some bytes of a file, and how many it has. */
  async bytes(where: string, query: Query): Promise<{ data: Uint8Array; size: number }> {
    const answer = await this.call(where + asked(query));
    const data = new Uint8Array(await answer.arrayBuffer());
    return { data, size: Number(answer.headers.get("x-file-size") ?? data.length) };
  }

  /** An answer that goes on and on. */
  stream(where: string, signal: AbortSignal): Promise<Response> {
    return this.call(where, { signal, headers: { Accept: "text/event-stream" } });
  }

  private async json<T>(where: string, init: RequestInit = {}): Promise<T> {
    const answer = await this.call(where, init);
    return (answer.status === 204 ? undefined : await answer.json()) as T;
  }

  private async call(where: string, init: RequestInit = {}): Promise<Response> {
    const answer = await this.fetched(where, init);
    if (answer.ok) return answer;
    throw this.noticed(await refusal(answer));
  }

  private async fetched(where: string, init: RequestInit): Promise<Response> {
    try {
      return await this.fetching(where, { credentials: "omit", cache: "no-store", ...init });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw error instanceof Problem ? this.noticed(error) : new Problem(0, "unreachable", "The server does not answer", "mas serve");
    }
  }

  private noticed(problem: Problem): Problem {
    if (problem.out) this.signedOut(problem.out);
    return problem;
  }
}

/** What to show of anything that was thrown. */
export function told(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(0, "page", error instanceof Error ? error.message : String(error));
}

function asked(query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string | number] => entry[1] !== undefined);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

async function refusal(answer: Response): Promise<Problem> {
  try {
    const body = (await answer.json()) as Record<string, unknown>;
    const errors = Array.isArray(body.errors) ? (body.errors as FieldError[]) : [];
    return new Problem(answer.status, String(body.code), String(body.detail), String(body.hint ?? ""), errors);
  } catch {
    return new Problem(answer.status, "refused", `The server answered ${answer.status} ${answer.statusText}`);
  }
}
