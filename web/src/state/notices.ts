// Short words at the edge of the page: what was done, with a way back, or what went wrong.

import { told } from "../protocol/api.ts";
import { Cell } from "./cell.ts";

export interface Notice {
  id: number;
  text: string;
  bad: boolean;
  undo?: () => void;
}

const STAY = 12_000;

export class Notices {
  readonly all = new Cell<readonly Notice[]>([]);
  private next = 1;

  say(text: string, undo?: () => void): void {
    this.add({ id: this.next++, text, bad: false, ...(undo ? { undo } : {}) });
  }

  fail(what: string, error: unknown): void {
    const problem = told(error);
    this.add({ id: this.next++, text: `${what}: ${problem.message}${problem.hint ? ` (${problem.hint})` : ""}`, bad: true });
  }

  /** What comes next makes earlier ways back lead astray. */
  dropUndo(): void {
    this.all.change((known) => known.filter((notice) => !notice.undo));
  }

  remove(id: number): void {
    this.all.change((known) => known.filter((notice) => notice.id !== id));
  }

  private add(notice: Notice): void {
    this.all.change((known) => [...known.slice(-3), notice]);
    setTimeout(() => this.remove(notice.id), STAY);
  }
}
