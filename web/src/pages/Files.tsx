// A session's files: browse, read, download, replay.

import { useState, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { Difference } from "../parts/Difference.tsx";
import { Markdown } from "../parts/Markdown.tsx";
import { path } from "../protocol/api.ts";
import type { FileEntry, SessionDetail } from "../protocol/shapes.ts";
import { useLoaded, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import { ago, bytes } from "../state/words.ts";
import { Replay } from "./Replay.tsx";

const MOST = 1 << 20;
const MOST_CAST = 16 << 20;
const PIECE = 4 << 20;

export function FilesView({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  const isFile = /\.[a-z0-9]+(\.\d+)?$/i.test(file);
  const folder = isFile ? file.split("/").slice(0, -1).join("/") : file;
  return (
    <div className="files">
      <section aria-label="Folder">
        <Crumbs id={detail.sessionId} at={folder} />
        <Folder id={detail.sessionId} at={folder} file={file} />
      </section>
      <section aria-label="File">
        {isFile ? <FileView key={file} detail={detail} file={file} /> : <Empty>Choose a file. Recordings (<code>.cast</code>, in <code>logs</code>) can be replayed.</Empty>}
      </section>
    </div>
  );
}

function Crumbs({ id, at }: { id: string; at: string }): ReactNode {
  const steps = at ? at.split("/") : [];
  return (
    <nav aria-label="Path" className="crumbs">
      <a href={sessionHref(id, "files")}>files</a>
      {steps.map((step, number) => (
        <span key={number}> / <a href={sessionHref(id, "files", steps.slice(0, number + 1).join("/"))}>{step}</a></span>
      ))}
    </nav>
  );
}

function Folder({ id, at, file }: { id: string; at: string; file: string }): ReactNode {
  const { api } = useMas();
  const now = useNow();
  const { value, problem, again } = useLoaded(
    () => api.get<{ entries: FileEntry[] }>(path`/sessions/${id}/files`, { path: at || undefined }),
    [id, at],
  );
  if (problem) return <ProblemBox problem={problem} retry={again} />;
  if (!value) return <Loading what="files" />;
  if (value.entries.length === 0) return <Empty>Nothing is in here.</Empty>;
  return (
    <ul className="folder">
      {value.entries.map((entry) => {
        const where = at ? `${at}/${entry.name}` : entry.name;
        const name = entry.kind === "directory" ? `${entry.name}/` : entry.name;
        const plain = entry.kind === "link" || entry.kind === "other";
        return (
          <li key={entry.name}>
            {plain ? <span>{name} <span className="quiet">{entry.kind}</span></span> : <a href={sessionHref(id, "files", where)} aria-current={where === file ? "page" : undefined}>{name}</a>}
            <span className="quiet">{entry.kind === "file" && `${bytes(entry.size)} · `}{entry.modifiedAt && ago(entry.modifiedAt, now)}</span>
          </li>
        );
      })}
    </ul>
  );
}

interface Content {
  text: string;
  size: number;
  whole: boolean;
  binary: boolean;
}

function FileView({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  const mas = useMas();
  const [look, setLook] = useState<"page" | "source" | "diff">("page");
  const isMarkdown = /\.md$/i.test(file);
  const hasTemplate = /^(unit|workflows)\//.test(file);
  const toggle = (wanted: "source" | "diff"): void => setLook(look === wanted ? "page" : wanted);
  const { value, problem, again } = useLoaded(() => read(mas.api, detail.sessionId, file, isCast(file) ? MOST_CAST : MOST, isLog(file)), [file]);
  return (
    <>
      <div className="bar">
        <h2>{file.split("/").at(-1)}</h2>
        <span className="quiet">{value && bytes(value.size)}</span>
        <span className="grow" />
        {isMarkdown && <button type="button" aria-pressed={look === "source"} onClick={() => toggle("source")}>Source</button>}
        {hasTemplate && <button type="button" aria-pressed={look === "diff"} onClick={() => toggle("diff")}>Difference from template</button>}
        <button type="button" onClick={again}>Reload</button>
        <a className="button" href={mas.fileHref(detail.sessionId, file)} download>Download</a>
      </div>
      {problem && <ProblemBox problem={problem} retry={again} />}
      {!value && !problem && <Loading what="the file" />}
      {value && !value.whole && <p className="quiet">{isLog(file) ? "The end of it" : "The beginning of it"}; download it to have all.</p>}
      {value && <Shown file={file} content={value} look={look} />}
    </>
  );
}

function Shown({ file, content, look }: { file: string; content: Content; look: "page" | "source" | "diff" }): ReactNode {
  if (isCast(file)) return <Replay text={content.text} startedAt={startOf(content.text)} />;
  if (content.binary) return <Empty>Not text. Download it to look at it.</Empty>;
  if (look === "diff") return <Difference file={file} text={content.text} />;
  if (look === "page" && /\.md$/i.test(file)) return <Markdown text={content.text} />;
  return <pre className="text" tabIndex={0} aria-label="Content">{plain(content.text)}</pre>;
}

function isCast(file: string): boolean {
  return /\.cast(\.\d+)?$/.test(file);
}

function isLog(file: string): boolean {
  return /\.(log|jsonl)(\.\d+)?$/.test(file);
}

/** Read a file up to a size: from its beginning, or its end. */
async function read(api: ReturnType<typeof useMas>["api"], id: string, file: string, most: number, tail: boolean): Promise<Content> {
  const where = path`/sessions/${id}/file`;
  const pieces: Uint8Array[] = [];
  let { data, size } = await api.bytes(where, { path: file, most: Math.min(most, PIECE) });
  let length = data.length;
  if (tail && size > most) ({ data, size } = await api.bytes(where, { path: file, offset: size - most, most }));
  pieces.push(data);
  while (!tail && data.length > 0 && length < Math.min(size, most)) {
    ({ data } = await api.bytes(where, { path: file, offset: length, most: PIECE }));
    pieces.push(data);
    length += data.length;
  }
  const all = new Uint8Array(await new Blob(pieces as Uint8Array<ArrayBuffer>[]).arrayBuffer());
  return { text: new TextDecoder().decode(all), size, whole: all.length >= size, binary: all.subarray(0, 8000).includes(0) };
}

function startOf(text: string): string | null {
  try {
    const { timestamp } = JSON.parse(text.slice(0, text.indexOf("\n"))) as { timestamp?: number };
    return timestamp ? new Date(timestamp * 1000).toISOString() : null;
  } catch {
    return null;
  }
}

/** Text of a terminal without what only a terminal understands. */
function plain(text: string): string {
  return text.replace(/\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f]/g, "");
}
