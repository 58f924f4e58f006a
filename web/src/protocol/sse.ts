// Server-sent events, read piece by piece as they come.

export interface Block {
  id: string | null;
  event: string;
  data: string | null;
}

/** Takes text in any pieces and answers the blocks that became whole. */
export class Blocks {
  private rest = "";
  private block: Block = empty();
  private begun = false;

  take(text: string): Block[] {
    // A carriage return at the end may be half of a line end.
    const whole = this.rest + text;
    const held = whole.endsWith("\r") ? 1 : 0;
    const lines = whole.slice(0, whole.length - held).split(/\r\n|\n|\r/);
    this.rest = (lines.pop() ?? "") + (held ? "\r" : "");
    return lines.map((line) => this.line(line)).filter((block): block is Block => block !== null);
  }

  private line(line: string): Block | null {
    if (line === "") {
      const { block, begun } = this;
      this.block = empty();
      this.begun = false;
      return begun ? block : null;
    }
    if (line.startsWith(":")) return null;
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "id") this.block.id = value;
    else if (name === "event") this.block.event = value;
    else if (name === "data") this.block.data = this.block.data === null ? value : `${this.block.data}\n${value}`;
    else return null;
    this.begun = true;
    return null;
  }
}

function empty(): Block {
  return { id: null, event: "message", data: null };
}
