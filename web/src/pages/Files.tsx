// A session's files: browse, read, compare with the template, download, replay.

import { useState, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { Difference } from "../parts/Difference.tsx";
import { Markdown } from "../parts/Markdown.tsx";
import { path } from "../protocol/api.ts";
import type { FileListing, SessionDetail } from "../protocol/shapes.ts";
import { useLoaded, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { sessionHref } from "../state/route.ts";
import { ago, bytes } from "../state/words.ts";
import { plain, readPart, type Part } from "../state/part.ts";
import { Replay } from "./Replay.tsx";

export function FilesView({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  const parent = file.split("/").slice(0, -1).join("/");
  const { value, problem, again } = useListing(detail.sessionId, parent);
  const name = file.split("/").at(-1) ?? "";
  // Only the folder's listing says what an entry is: its name does not.
  const known = value?.path === parent ? value : null;
  const kind = file === "" ? "directory" : known && (known.entries.find((entry) => entry.name === name)?.kind ?? "absent");
  const folder = kind === "directory" ? file : parent;
  return (
    <div className={kind === "file" ? "files reading" : "files"}>
      <section aria-label="Folder">
        <Crumbs id={detail.sessionId} at={folder} />
        {kind && <Folder id={detail.sessionId} at={folder} file={file} />}
      </section>
      <section aria-label="File">
        {problem && file !== "" ? <ProblemBox problem={problem} retry={again} /> : !kind && <Loading what="the folder" />}
        {kind === "directory" && <Empty>Choose a file. Recordings (<code>.cast</code>, in <code>logs</code>) can be replayed.</Empty>}
        {kind === "file" && <FileView key={file} detail={detail} file={file} />}
        {kind === "absent" && <Empty><code>{name}</code> no longer exists.</Empty>}
        {(kind === "link" || kind === "other") && <Empty><code>{name}</code> is no file{kind === "link" && ": links are not followed"}.</Empty>}
      </section>
    </div>
  );
}

function useListing(id: string, at: string): ReturnType<typeof useLoaded<FileListing>> {
  const { api } = useMas();
  return useLoaded(() => api.get<FileListing>(path`/sessions/${id}/files`, { path: at || undefined }), [id, at]);
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
  const now = useNow();
  const { value, problem, again } = useListing(id, at);
  if (problem) return <ProblemBox problem={problem} retry={again} />;
  if (value?.path !== at) return <Loading what="files" />;
  if (value.entries.length === 0) return <Empty>This folder is empty.</Empty>;
  return (
    <ul className="folder">
      {value.entries.map((entry) => {
        const where = at ? `${at}/${entry.name}` : entry.name;
        const name = entry.kind === "directory" ? `${entry.name}/` : entry.name;
        const opens = entry.kind === "file" || entry.kind === "directory";
        return (
          <li key={entry.name}>
            {opens ? <a href={sessionHref(id, "files", where)} aria-current={where === file ? "page" : undefined}>{name}</a> : <span>{name} <span className="quiet">{entry.kind}</span></span>}
            <span className="quiet">{entry.kind === "file" && `${bytes(entry.size)} · `}{entry.modifiedAt && ago(entry.modifiedAt, now)}</span>
          </li>
        );
      })}
    </ul>
  );
}

function FileView({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  if (/\.cast(\.\d+)?$/.test(file)) {
    return (
      <>
        <div className="bar"><Title file={file} /><span className="grow" /><Download detail={detail} file={file} /></div>
        <Replay key={file} sessionId={detail.sessionId} file={file} />
      </>
    );
  }
  return <TextView detail={detail} file={file} />;
}

type Look = "page" | "source" | "diff";

function TextView({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  const { api } = useMas();
  const [look, setLook] = useState<Look>("page");
  const isMarkdown = /\.md$/i.test(file);
  const isLog = /\.(log|jsonl)(\.\d+)?$/.test(file);
  // Of a log the end is what one looks for.
  const [from, setFrom] = useState<number | null>(isLog ? null : 0);
  const { value, problem, again } = useLoaded(() => readPart(api, detail.sessionId, file, from), [file, from]);
  const toggle = (wanted: Look): void => setLook(look === wanted ? "page" : wanted);
  const text = value && !value.binary ? value : null;
  return (
    <>
      <div className="bar">
        <Title file={file} size={value?.size} />
        <span className="grow" />
        {isMarkdown && text?.whole && <button type="button" aria-pressed={look === "source"} onClick={() => toggle("source")}>Source</button>}
        {/^(unit|workflows)\//.test(file) && text?.whole && <button type="button" aria-pressed={look === "diff"} onClick={() => toggle("diff")}>Difference from template</button>}
        <button type="button" onClick={again}>Reload</button>
        <Download detail={detail} file={file} />
      </div>
      {problem && <ProblemBox problem={problem} retry={again} />}
      {!value && !problem && <Loading what="the file" />}
      {value?.binary && <Empty>This is not a text file. Download it to open it in another program.</Empty>}
      {text && !text.whole && <Pieces part={text} go={setFrom} />}
      {text && <Shown file={file} text={text.text} look={text.whole ? look : "source"} />}
    </>
  );
}

function Title({ file, size }: { file: string; size?: number | undefined }): ReactNode {
  return <><h2>{file.split("/").at(-1)}</h2><span className="quiet">{size !== undefined && bytes(size)}</span></>;
}

function Download({ detail, file }: { detail: SessionDetail; file: string }): ReactNode {
  const mas = useMas();
  return <button type="button" onClick={() => void mas.download(detail.sessionId, file)}>Download</button>;
}

function Pieces({ part, go }: { part: Part; go: (from: number) => void }): ReactNode {
  const end = part.from + part.length;
  return (
    <div className="bar" role="group" aria-label="Pieces">
      <span className="quiet" role="status">Large: this is {bytes(part.from)} to {bytes(end)} of {bytes(part.size)}.</span>
      <button type="button" disabled={part.from === 0} onClick={() => go(Math.max(0, part.from - part.most))}>Previous</button>
      <button type="button" disabled={end >= part.size} onClick={() => go(end)}>Next</button>
    </div>
  );
}

function Shown({ file, text, look }: { file: string; text: string; look: Look }): ReactNode {
  if (look === "diff") return <Difference file={file} text={text} />;
  if (text === "") return <Empty>This file is empty.</Empty>;
  if (look === "page" && /\.md$/i.test(file)) return <Markdown text={text} />;
  return <pre className="text" tabIndex={0} aria-label="Content">{plain(text)}</pre>;
}
