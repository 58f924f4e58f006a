// One agent's terminal: xterm fed by a channel. It lives on while it is shown small, large or not at all.

import { SearchAddon } from "@xterm/addon-search";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import type { Channel, Mux, Sink } from "../protocol/mux.ts";
import { Cell } from "../state/cell.ts";
import { BELOW, crop } from "./crop.ts";

export const SMALL = 11;
const LEAST_LARGE = 12;
const MOST_LARGE = 16;
const FITTED = 13;
// Room that letters do not have: the padding, and beside them the scroll bar.
const AROUND = 12;
const BESIDE = 30;
// How wide a character of a monospaced font is for its height.
const WIDTH = 0.605;
const HISTORY = 5000;
// How many lines make a place in the text.
const PLACE = 5;
// What is read out of a tile, and how often it is looked at, in milliseconds.
const TAIL = 6;
const TAIL_EVERY = 1000;
export const FONT = 'ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';
export const COLOURS = {
  background: "#14181c", foreground: "#d6dde3", cursor: "#7fd4c1", selectionBackground: "#3d5a73",
  black: "#3b454d", red: "#ff8f85", green: "#7ddc9c", yellow: "#ffc46b", blue: "#7fb8ff", magenta: "#d7a6ff", cyan: "#7fd4c1", white: "#d6dde3",
  brightBlack: "#8795a1", brightRed: "#ffb3ab", brightGreen: "#a5ebbc", brightYellow: "#ffd899", brightBlue: "#a9d0ff", brightMagenta: "#e6c8ff", brightCyan: "#a8e6d8", brightWhite: "#ffffff",
};

export type Ending = { exitStatus: number | null } | null;

export class Screen implements Sink {
  /** What is put into the page; moving it moves the terminal. */
  readonly host = document.createElement("div");
  readonly isLive = new Cell(false);
  readonly ending = new Cell<Ending>(null);
  readonly trouble = new Cell("");
  /** The last lines as text, for screen readers; up to a second old. */
  readonly tail = new Cell("");
  readonly search = new SearchAddon();
  readonly terminal: Terminal;
  private readonly channel: Channel;
  private window: HTMLElement | null = null;
  private placing = 0;
  private telling: ReturnType<typeof setTimeout> | undefined;

  constructor(mux: Mux, session: string, agent: string, follow: (address: string) => void) {
    this.host.className = "screen";
    this.terminal = new Terminal({
      fontFamily: FONT,
      fontSize: SMALL,
      scrollback: HISTORY,
      theme: COLOURS,
      disableStdin: true,
      cursorInactiveStyle: "outline",
      allowProposedApi: true,
      minimumContrastRatio: 4.5,
    });
    this.terminal.loadAddon(new Unicode11Addon());
    this.terminal.unicode.activeVersion = "11";
    this.terminal.loadAddon(this.search);
    this.terminal.loadAddon(new WebLinksAddon((_, address) => follow(address)));
    this.terminal.open(this.host);
    this.terminal.onData((text) => void this.channel.type(text));
    // A character is a byte here: what old ways to report the mouse need.
    this.terminal.onBinary((text) => void this.channel.type(Uint8Array.from(text, (one) => one.charCodeAt(0))));
    this.terminal.onRender(() => this.place());
    this.terminal.onWriteParsed(() => (this.telling ??= setTimeout(() => this.tell(), TAIL_EVERY)));
    this.channel = mux.subscribe(session, agent, this);
  }

  screen(columns: number, rows: number, data: Uint8Array, done: () => void): void {
    const { active } = this.terminal.buffer;
    const back = active.baseY - active.viewportY;
    const reading = this.lines(active.viewportY);
    this.ending.set(null);
    this.trouble.set("");
    this.terminal.resize(columns, rows);
    this.terminal.write(data, () => {
      // Whoever was reading further up goes on reading there.
      if (back > 0) this.terminal.scrollToLine(this.placeOf(reading, back));
      done();
    });
  }

  /** A few lines as text, by which one finds one's place again. */
  private lines(from: number): string {
    const { active } = this.terminal.buffer;
    return Array.from({ length: PLACE }, (_, number) => active.getLine(from + number)?.translateToString(true)).join("\n");
  }

  /** Where the lines that stood so far back are now: further up, if more was printed since. */
  private placeOf(reading: string, back: number): number {
    const most = Math.max(0, this.terminal.buffer.active.baseY - back);
    for (let at = most; at >= 0; at -= 1) if (this.lines(at) === reading) return at;
    return most;
  }

  data(data: Uint8Array, done: () => void): void {
    this.terminal.write(data, done);
  }

  end(exitStatus: number | null): void {
    this.ending.set({ exitStatus });
  }

  error(_code: string, message: string): void {
    this.trouble.set(message);
  }

  live(live: boolean): void {
    this.isLive.set(live);
  }

  /** Show a readable part of it in a window: the tail, round the cursor. */
  showSmall(window: HTMLElement): void {
    this.window = window;
    this.terminal.options.disableStdin = true;
    this.terminal.options.fontSize = SMALL;
    this.host.inert = true;
    this.terminal.scrollToBottom();
    window.append(this.host);
    this.place();
  }

  /** Show all of it, to be typed into. */
  showLarge(place: HTMLElement): void {
    this.window = null;
    this.host.inert = false;
    this.host.style.transform = "";
    this.terminal.options.disableStdin = false;
    place.append(this.host);
    this.enlarge(place);
  }

  /** Take the largest letters with which all columns fit; where none does, one can scroll. */
  enlarge(place: HTMLElement): void {
    const fitting = Math.floor((place.clientWidth - BESIDE) / (this.terminal.cols * WIDTH));
    this.terminal.options.fontSize = Math.max(LEAST_LARGE, Math.min(MOST_LARGE, fitting));
  }

  /** Take it out of a place, if it is still there. */
  leave(place: HTMLElement): void {
    if (this.host.parentElement === place) this.host.remove();
    if (this.window === place) this.window = null;
  }

  /** How many cells of a comfortable size fit into a place. */
  fitting(place: HTMLElement): { columns: number; rows: number } | null {
    this.terminal.options.fontSize = FITTED;
    const cell = this.cell();
    if (!cell) return null;
    return {
      columns: Math.max(20, Math.floor((place.clientWidth - BESIDE) / (FITTED * WIDTH))),
      rows: Math.max(5, Math.floor((place.clientHeight - AROUND) / cell.height)),
    };
  }

  /** Change the size of the agent's own terminal, for everybody. */
  resize(columns: number, rows: number): void {
    this.channel.resize(columns, rows);
  }

  /** Have what is printed read out, where a program for that is listening. */
  readOut(wanted: boolean): void {
    this.terminal.options.screenReaderMode = wanted;
  }

  dispose(): void {
    cancelAnimationFrame(this.placing);
    clearTimeout(this.telling);
    this.channel.close();
    this.host.remove();
    this.terminal.dispose();
  }

  private cell(): { width: number; height: number } | null {
    const drawn = this.host.querySelector(".xterm-screen")?.getBoundingClientRect();
    if (!drawn || drawn.width === 0) return null;
    return { width: drawn.width / this.terminal.cols, height: drawn.height / this.terminal.rows };
  }

  /** How many of the next lines beneath the cursor something is written in, empty ones between them too. */
  private below(): number {
    const { active } = this.terminal.buffer;
    for (let line = BELOW; line > 0; line -= 1) {
      const inside = active.cursorY + line < this.terminal.rows;
      if (inside && active.getLine(active.baseY + active.cursorY + line)?.translateToString(true)) return line;
    }
    return 0;
  }

  private tell(): void {
    this.telling = undefined;
    const { active } = this.terminal.buffer;
    const lines: string[] = [];
    for (let at = active.baseY + this.terminal.rows - 1; at >= 0 && lines.length < TAIL; at -= 1) {
      const line = active.getLine(at)?.translateToString(true);
      if (line) lines.unshift(line);
    }
    this.tail.set(lines.join("\n"));
  }

  private place(): void {
    if (!this.window || this.placing) return;
    this.placing = requestAnimationFrame(() => {
      this.placing = 0;
      const cell = this.cell();
      if (!this.window || !cell) return;
      const { active } = this.terminal.buffer;
      const corner = crop(
        { columns: this.terminal.cols, rows: this.terminal.rows },
        { columns: Math.floor(this.window.clientWidth / cell.width), rows: Math.floor(this.window.clientHeight / cell.height) },
        { column: active.cursorX, row: active.cursorY },
        this.below(),
      );
      this.host.style.transform = `translate(${-corner.column * cell.width}px, ${-corner.row * cell.height}px)`;
    });
  }
}

/** The terminals of one session, made when first looked at and kept until it is left. */
export class Screens {
  private readonly made = new Map<string, Screen>();

  constructor(
    private readonly mux: Mux,
    private readonly session: string,
    /** What a click on a link in one of them does. */
    private readonly follow: (address: string) => void,
  ) {}

  of(agent: string): Screen {
    let screen = this.made.get(agent);
    if (!screen) {
      screen = new Screen(this.mux, this.session, agent, this.follow);
      this.made.set(agent, screen);
    }
    return screen;
  }

  dispose(): void {
    for (const screen of this.made.values()) screen.dispose();
    this.made.clear();
  }
}
