// Ports that a session's programs listen at, and forwards to them.

import { useState, type ReactNode } from "react";
import { path, told, type Problem } from "../protocol/api.ts";
import type { Forward, ForwardBody, ForwardList, PortList } from "../protocol/shapes.ts";
import { useLoaded, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import type { Inside } from "../state/ports.ts";
import { Dialog, ProblemBox } from "./basics.tsx";

// How often the list is loaded again while it is shown, in milliseconds.
const EVERY = 5000;

interface Both {
  open: PortList;
  forwards: readonly Forward[];
}

/** The ports of a session that runs, each with a link to what listens there. */
export function Ports({ id }: { id: string }): ReactNode {
  const mas = useMas();
  const now = useNow(EVERY);
  const load = async (): Promise<Both> => {
    const [open, { forwards }] = await Promise.all([
      mas.api.get<PortList>(path`/sessions/${id}/ports`),
      mas.api.get<ForwardList>(path`/sessions/${id}/forwards`),
    ]);
    return { open, forwards };
  };
  const { value, problem, again } = useLoaded(load, [id, now]);
  const [asked, setAsked] = useState<number | null>(null);
  if (problem) return <ProblemBox problem={problem} retry={again} />;
  if (!value) return null;
  const agents = new Map(value.open.ports.map((one) => [one.port, one.agent]));
  const urls = new Map(value.forwards.map((one) => [one.port, one.url]));
  const ports = [...new Set([...agents.keys(), ...urls.keys()])].sort((one, other) => one - other);
  const close = async (port: number): Promise<void> => {
    try {
      await mas.api.delete(path`/sessions/${id}/forwards/${String(port)}`);
    } catch (error) {
      mas.notices.fail(`Close the forward to port ${port}`, error);
    }
    again();
  };
  return (
    <section className="network ports">
      <h2>Ports</h2>
      {ports.length === 0 && <p className="quiet">No program of the session listens at a port.</p>}
      <ul>
        {ports.map((port) => {
          const url = urls.get(port);
          return (
            <li key={port}>
              <b>{port}</b> <span className="quiet">{agents.has(port) ? `agent ${agents.get(port) ?? "?"}` : "no program listens"}</span>
              {url ? (
                <>
                  <a href={url} target="_blank" rel="noreferrer noopener">{url}</a>
                  <button type="button" onClick={() => void close(port)}>Close<span className="unseen"> the forward to port {port}</span></button>
                </>
              ) : (
                <button type="button" onClick={() => setAsked(port)}>Open…<span className="unseen"> port {port}</span></button>
              )}
            </li>
          );
        })}
      </ul>
      {asked !== null && <OpenPort id={id} inside={{ port: asked, rest: "" }} close={() => (setAsked(null), again())} />}
    </section>
  );
}

/** Asks before a page of an agent is opened: the link to it may be the agent's, too. */
export function OpenPort({ id, inside, close }: { id: string; inside: Inside; close: () => void }): ReactNode {
  const mas = useMas();
  const [problem, setProblem] = useState<Problem | null>(null);
  const [forward, setForward] = useState<Forward | null>(null);
  const { port, rest } = inside;
  const open = async (): Promise<void> => {
    try {
      setForward(await mas.api.post<Forward>(path`/sessions/${id}/forwards`, { port, local: null, anyUser: false } satisfies ForwardBody));
    } catch (error) {
      setProblem(told(error));
    }
  };
  return (
    <Dialog title={`Open port ${port}`} close={close}>
      <h2>Open port {port} of this session?</h2>
      {!forward && <p>A port of the machine with MAS will lead there, for your own programs, until the session or the server stops. What it shows is an agent's work: treat it as a page that you do not know.</p>}
      {problem && <ProblemBox problem={problem} />}
      {forward && !forward.listening && <p>No program listens at port {port} at the moment.</p>}
      {forward && <p><a href={forward.url + rest} target="_blank" rel="noreferrer noopener" autoFocus onClick={close}>{forward.url + rest}</a></p>}
      {forward && <p className="quiet">If this browser is on another machine, run there first: <code>ssh -L {forward.local}:127.0.0.1:{forward.local} …</code></p>}
      <div className="bar">
        {!forward && <button type="button" className="strong" onClick={() => void open()}>Open a forward</button>}
        <button type="button" onClick={close}>{forward ? "Done" : "Cancel"}</button>
      </div>
    </Dialog>
  );
}
