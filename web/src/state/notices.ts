// Short words at the edge of the page: what was done, with a way back, or what went wrong.

import { told } from "../protocol/api.ts";
import { Cell } from "./cell.ts";

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  undo?: () => void;
}

const STAY = 8000;
// Whoever wants to go back has to notice first that it was not meant.
const STAY_UNDO = 30_000;
const MOST = 4;

export class Notices {
  readonly all = new Cell<readonly Notice[]>([]);
  private next = 1;

  say(text: string, undo?: () => void): void {
    this.add({ id: this.next++, text, bad: false, ...(undo ? { undo } : {}) });
  }

  fail(what: string, error: unknown): void {
    const problem = told(error);
    this.warn(`${what}: ${problem.message}${problem.hint ? ` (${problem.hint})` : ""}`);
  }

  /** What went wrong stays until it was read. */
  warn(text: string): void {
    this.add({ id: this.next++, text, bad: true });
  }

  /** What comes next makes earlier ways back lead astray. */
  dropUndo(): void {
    this.all.change((known) => known.filter((notice) => !notice.undo));
  }

  remove(id: number): void {
    this.all.change((known) => known.filter((notice) => notice.id !== id));
  }

  private add(notice: Notice): void {
    this.all.change((known) => [...known.slice(1 - MOST), notice]);
    if (!notice.bad) setTimeout(() => this.remove(notice.id), notice.undo ? STAY_UNDO : STAY);
  }
}
