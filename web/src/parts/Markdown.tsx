// Markdown as elements.

import { useMemo, type ReactNode } from "react";
import { parseMarkdown, type Inline, type Part } from "./markdown.ts";

export function Markdown({ text }: { text: string }): ReactNode {
  const parts = useMemo(() => parseMarkdown(text), [text]);
  return <div className="markdown">{parts.map((part, number) => <Drawn key={number} part={part} />)}</div>;
}

function Drawn({ part }: { part: Part }): ReactNode {
  switch (part.kind) {
    case "heading": {
      // The page has its own first headings.
      const Tag = `h${Math.min(6, part.level + 2)}` as "h3";
      return <Tag><Words inline={part.inline} /></Tag>;
    }
    case "paragraph":
      return <p><Words inline={part.inline} /></p>;
    case "quote":
      return <blockquote><Words inline={part.inline} /></blockquote>;
    case "list": {
      const Tag = part.ordered ? "ol" : "ul";
      return <Tag>{part.items.map((item, number) => <li key={number}><Item parts={item} /></li>)}</Tag>;
    }
    case "table":
      return (
        <table>
          <thead><tr>{part.head.map((cell, number) => <th key={number} scope="col"><Words inline={cell} /></th>)}</tr></thead>
          <tbody>{part.rows.map((row, line) => <tr key={line}>{row.map((cell, number) => <td key={number}><Words inline={cell} /></td>)}</tr>)}</tbody>
        </table>
      );
    case "code":
      return <pre><code>{part.text}</code></pre>;
    case "rule":
      return <hr />;
  }
}

/** What a list item holds; a text alone needs no paragraph of its own. */
function Item({ parts }: { parts: readonly Part[] }): ReactNode {
  return parts.map((part, number) => (part.kind === "paragraph" && number === 0 ? <Words key={number} inline={part.inline} /> : <Drawn key={number} part={part} />));
}

function Words({ inline }: { inline: readonly Inline[] }): ReactNode {
  return inline.map((one, number) => {
    if (one.kind === "link") return <a key={number} href={one.href} target="_blank" rel="noopener noreferrer">{one.text}</a>;
    if (one.kind === "text") return one.text;
    const Tag = one.kind;
    return <Tag key={number}>{one.text}</Tag>;
  });
}
