// A small part of Markdown as plain values. Nothing of it can become HTML: it is drawn as text.

export type Inline = { kind: "text" | "code" | "strong" | "em"; text: string } | { kind: "link"; text: string; href: string };

export type Part =
  | { kind: "heading"; level: number; inline: Inline[] }
  | { kind: "paragraph"; inline: Inline[] }
  | { kind: "list"; ordered: boolean; items: Part[][] }
  | { kind: "quote"; inline: Inline[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "code"; text: string }
  | { kind: "rule" };

// Agents write what is read here: no pattern may look at the same text again and again, and nothing goes on without end.
const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\][]+)\]\(([^)\s]{1,2000})\)/g;
const ITEM = /^( {0,3}(?:[-*+]|(\d+)[.)])\s+)(.*)$/s;
const FENCE = /^\s*(```|~~~)/;
const DEEPEST = 20;

export function parseMarkdown(text: string, depth = 0): Part[] {
  if (depth > DEEPEST) return [{ kind: "paragraph", inline: [{ kind: "text", text }] }];
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const parts: Part[] = [];
  let at = 0;
  const gather = (more: (line: string) => boolean): string[] => {
    const found: string[] = [];
    for (let line = lines[at]; line !== undefined && more(line); line = lines[at]) {
      found.push(line);
      at += 1;
    }
    return found;
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const heading = /^(#{1,6})\s+(.*)$/s.exec(line);
    if (FENCE.test(line)) {
      at += 1;
      parts.push({ kind: "code", text: gather((next) => !FENCE.test(next)).join("\n") });
      at += 1;
    } else if (heading) {
      parts.push({ kind: "heading", level: heading[1]?.length ?? 1, inline: parseInline(unmarked(heading[2] ?? "")) });
      at += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      parts.push({ kind: "rule" });
      at += 1;
    } else if (ITEM.test(line)) {
      parts.push(list(gather((next) => ITEM.test(next) || /^\s{2,}\S/.test(next) || (next.trim() === "" && /^\s{2,}\S/.test(lines[at + 1] ?? ""))), depth));
    } else if (line.startsWith(">")) {
      const quoted = gather((next) => next.startsWith(">")).map((one) => one.replace(/^>\s?/, ""));
      parts.push({ kind: "quote", inline: parseInline(quoted.join(" ")) });
    } else if (line.startsWith("|") && /^\|[\s:|-]+$/.test(lines[at + 1] ?? "")) {
      const [head = [], , ...rows] = gather((next) => next.startsWith("|")).map(cells);
      parts.push({ kind: "table", head, rows });
    } else if (line.trim() === "") {
      at += 1;
    } else {
      const words = gather((next) => next.trim() !== "" && !/^(#{1,6}\s|>|\||\s*(```|~~~))/.test(next) && !ITEM.test(next));
      // A line that looked like something else and was not.
      if (words.length === 0) words.push(lines[at++] ?? "");
      parts.push({ kind: "paragraph", inline: parseInline(words.join(" ")) });
    }
  }
  return parts;
}

/** The items of a list; whatever is indented beneath one belongs to it. */
function list(lines: readonly string[], depth: number): Part {
  const items: string[][] = [];
  let ordered = false;
  let indent = 0;
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item) {
      ordered = item[2] !== undefined;
      indent = item[1]?.length ?? 0;
      items.push([item[3] ?? ""]);
    } else {
      const blank = /^\s*/.exec(line)?.[0].length ?? 0;
      items.at(-1)?.push(line.slice(Math.min(indent, blank)));
    }
  }
  return { kind: "list", ordered, items: items.map((item) => parseMarkdown(item.join("\n"), depth + 1)) };
}

/** A heading without the marks that may end it. */
function unmarked(text: string): string {
  let end = text.trimEnd().length;
  while (text[end - 1] === "#") end -= 1;
  return text.slice(0, end).trimEnd();
}

function cells(line: string): Inline[][] {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => parseInline(cell.trim()));
}

export function parseInline(text: string): Inline[] {
  const found: Inline[] = [];
  let last = 0;
  for (const match of text.matchAll(INLINE)) {
    if (match.index > last) found.push({ kind: "text", text: text.slice(last, match.index) });
    const [whole, code, strong, em, label, href] = match;
    if (code !== undefined) found.push({ kind: "code", text: code });
    else if (strong !== undefined) found.push({ kind: "strong", text: strong });
    else if (em !== undefined) found.push({ kind: "em", text: em });
    else if (label !== undefined && href !== undefined && /^https?:\/\//i.test(href)) found.push({ kind: "link", text: label, href });
    else found.push({ kind: "text", text: label ?? whole });
    last = match.index + whole.length;
  }
  if (last < text.length) found.push({ kind: "text", text: text.slice(last) });
  return found;
}
