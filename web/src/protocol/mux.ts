// Many terminals on one WebSocket: subscribes, acknowledges what was drawn, and comes back after a break.

import { Patience } from "./retry.ts";

// How much is drawn before the server gets an acknowledgement.
const ACK = 64 << 10;
const LARGEST_INPUT = 16 << 10;
const CHANNELS = 65536;

/** Where a terminal's bytes go. Whoever has drawn bytes calls `done`. */
export interface Sink {
  /** Start afresh with this. */
  screen(columns: number, rows: number, data: Uint8Array, done: () => void): void;
  data(data: Uint8Array, done: () => void): void;
  end(exitStatus: number | null): void;
  error(code: string, message: string): void;
  /** Whether what is typed arrives. */
  live(live: boolean): void;
}

/** The part of a browser's WebSocket that is used. */
export interface Wire {
  binaryType: string;
  readonly readyState: number;
  onopen: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown } & never) => void) | null;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
}

const OPEN = 1;

export class Channel {
  private drawn = 0;
  private size: { columns: number; rows: number } | null = null;
  private expectsScreen: { columns: number; rows: number } | null = null;
  private era = 0;

  constructor(
    private readonly mux: Mux,
    readonly number: number,
    readonly sessionId: string,
    readonly agent: string,
    readonly sink: Sink,
  ) {}

  /** Type into the terminal. What cannot be sent now is dropped: keys that arrive much later do harm. */
  type(keys: string | Uint8Array): boolean {
    const bytes = typeof keys === "string" ? new TextEncoder().encode(keys) : keys;
    for (let start = 0; start < bytes.length; start += LARGEST_INPUT) {
      if (!this.mux.sendBytes(this.number, bytes.subarray(start, start + LARGEST_INPUT))) return false;
    }
    return true;
  }

  resize(columns: number, rows: number): void {
    this.size = { columns, rows };
    this.mux.say({ type: "resize", channel: this.number, columns, rows });
  }

  close(): void {
    this.mux.leave(this);
  }

  /** Called by the socket: a new connection, on which nothing was drawn yet. */
  begin(): void {
    this.era += 1;
    this.drawn = 0;
    this.expectsScreen = null;
    this.mux.say({ type: "subscribe", channel: this.number, sessionId: this.sessionId, agent: this.agent });
    if (this.size) this.mux.say({ type: "resize", channel: this.number, ...this.size });
  }

  /** Called by the socket with a frame of this channel. */
  take(frame: Uint8Array | Record<string, unknown>): void {
    if (frame instanceof Uint8Array) {
      const done = this.counted(frame.length);
      if (this.expectsScreen) {
        const { columns, rows } = this.expectsScreen;
        this.expectsScreen = null;
        this.sink.live(true);
        this.sink.screen(columns, rows, frame, done);
      } else {
        this.sink.data(frame, done);
      }
    } else if (frame.type === "screen") {
      this.expectsScreen = { columns: Number(frame.columns), rows: Number(frame.rows) };
    } else if (frame.type === "end") {
      this.sink.end(typeof frame.exitStatus === "number" ? frame.exitStatus : null);
    } else if (frame.type === "error") {
      this.sink.error(String(frame.code), String(frame.message));
    }
  }

  private counted(bytes: number): () => void {
    const { era } = this;
    let once = true;
    return () => {
      // What a former connection sent does not count any more.
      if (!once || era !== this.era) return;
      once = false;
      this.drawn += bytes;
      if (this.drawn >= ACK && this.mux.say({ type: "ack", channel: this.number, bytes: this.drawn })) this.drawn = 0;
    };
  }
}

export class Mux {
  private wire: Wire | null = null;
  private readonly channels = new Map<number, Channel>();
  private next = 0;
  /** The connection that is open or being opened; another one each time. */
  private turn: symbol | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly patience = new Patience();

  constructor(private readonly dial: () => Promise<Wire>) {}

  get isOpen(): boolean {
    return this.wire?.readyState === OPEN;
  }

  subscribe(sessionId: string, agent: string, sink: Sink): Channel {
    do this.next = (this.next + 1) % CHANNELS;
    while (this.channels.has(this.next));
    const channel = new Channel(this, this.next, sessionId, agent, sink);
    this.channels.set(channel.number, channel);
    if (this.isOpen) channel.begin();
    else if (!this.turn && this.timer === undefined) this.connect();
    return channel;
  }

  leave(channel: Channel): void {
    if (this.channels.get(channel.number) !== channel) return;
    this.channels.delete(channel.number);
    this.say({ type: "unsubscribe", channel: channel.number });
    if (this.channels.size === 0) this.hangUp();
  }

  /** Try again now: the machine woke up, or the network is back. */
  retry(): void {
    if (this.channels.size === 0) return;
    this.patience.reset();
    this.hangUp();
    this.connect();
  }

  say(fields: Record<string, unknown>): boolean {
    if (!this.isOpen) return false;
    this.wire?.send(JSON.stringify(fields));
    return true;
  }

  sendBytes(channel: number, bytes: Uint8Array): boolean {
    if (!this.isOpen) return false;
    const frame = new Uint8Array(bytes.length + 2);
    frame[0] = channel >> 8;
    frame[1] = channel & 255;
    frame.set(bytes, 2);
    this.wire?.send(frame);
    return true;
  }

  private connect(): void {
    this.timer = undefined;
    const turn = Symbol();
    this.turn = turn;
    this.dial().then(
      (wire) => (this.turn === turn ? this.use(wire) : wire.close()),
      () => this.turn === turn && this.later(),
    );
  }

  private use(wire: Wire): void {
    this.wire = wire;
    wire.binaryType = "arraybuffer";
    wire.onopen = () => {
      if (this.wire !== wire) return;
      this.patience.reset();
      for (const channel of this.channels.values()) channel.begin();
    };
    wire.onmessage = (event: { data: unknown }) => {
      if (this.wire === wire) this.take(event.data);
    };
    wire.onclose = () => {
      if (this.wire !== wire) return;
      this.wire = null;
      for (const channel of this.channels.values()) channel.sink.live(false);
      this.later();
    };
  }

  private later(): void {
    this.turn = null;
    this.timer = setTimeout(() => this.connect(), this.patience.next());
  }

  private hangUp(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const { wire } = this;
    this.wire = null;
    this.turn = null;
    for (const channel of this.channels.values()) channel.sink.live(false);
    wire?.close();
  }

  private take(data: unknown): void {
    if (data instanceof ArrayBuffer) {
      if (data.byteLength < 2) return;
      const number = new DataView(data).getUint16(0);
      this.channels.get(number)?.take(new Uint8Array(data, 2));
    } else if (typeof data === "string") {
      const frame = JSON.parse(data) as Record<string, unknown>;
      this.channels.get(Number(frame.channel))?.take(frame);
    }
  }
}
