// What a session's agents reach, and what they asked for; what was refused can be allowed.

import { useEffect, useState, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { Ports } from "../parts/Ports.tsx";
import { path } from "../protocol/api.ts";
import type { NetworkBody, NetworkChange, NetworkRequest, NetworkView as Shown, SessionDetail } from "../protocol/shapes.ts";
import { useCell, useNow } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { useMas } from "../state/mas.ts";
import { ago, count } from "../state/words.ts";

const MEANING: Record<Shown["mode"], string> = {
  names: "Agents reach every public name at the ports 22, 80 and 443.",
  list: "Agents reach the names that are allowed, and no other.",
  full: "Agents reach every public address; only what goes through MAS is recorded.",
  none: "Agents reach MAS alone.",
  shared: "Agents reach all that this machine does, its own services too. Nothing is recorded.",
};
// The class of a badge with the same colour, and a sign for people who see no colours.
const LOOK: Record<NetworkRequest["result"], readonly [string, string]> = {
  refused: ["error", "✕"],
  failed: ["blocked", "▲"],
  found: ["stopped", "●"],
  connected: ["idle", "●"],
};

export default function NetworkView({ session, detail }: { session: Watched; detail: SessionDetail }): ReactNode {
  const { value, problem } = useCell(session.network);
  useEffect(() => void session.fetchNetwork(), [session]);
  return (
    <>
      {problem && <ProblemBox problem={problem} retry={() => void session.fetchNetwork()} />}
      {!value && !problem && <Loading what="the network" />}
      {value && <Network network={value} session={session} />}
      {detail.status === "active" && <Ports id={session.id} />}
    </>
  );
}

function Network({ network, session }: { network: Shown; session: Watched }): ReactNode {
  const lists = [["allow", network.allow], ["private", network.private]] as const;
  return (
    <section className="network">
      <h2>
        Network {network.mode} <span className="quiet">{network.reason}</span>
      </h2>
      <p>{MEANING[network.mode]}</p>
      {lists.map(([name, places]) => places.length > 0 && <p key={name}>{name} <span className="quiet">{places.join(", ")}</span></p>)}
      {network.requests.length === 0 && network.isRecorded && <Empty>No agent has asked for a name.</Empty>}
      {network.requests.length > 0 && <Requests network={network} session={session} />}
      {network.total > network.requests.length && (
        <p className="quiet">The first {network.requests.length} of {count(network.total, "request")}; all: <code>mas network {session.id.slice(0, 8)} -n {network.total}</code></p>
      )}
    </section>
  );
}

function Requests({ network, session }: { network: Shown; session: Watched }): ReactNode {
  const now = useNow();
  return (
    <table className="sessions requests">
      <thead>
        <tr>
          <th scope="col">Agent</th>
          <th scope="col">Name</th>
          <th scope="col">Result</th>
          <th scope="col" className="number">Times</th>
          <th scope="col" className="number">Last</th>
          <th scope="col"><span className="unseen">Allow</span></th>
        </tr>
      </thead>
      <tbody>
        {network.requests.map((one) => (
          <tr key={`${one.agent}/${one.name}/${one.port}`} className={one.result === "refused" ? "is-refused" : undefined}>
            <td>{one.agent ?? "?"}</td>
            <th scope="row">{one.name}{one.port !== null && <span className="quiet">:{one.port}</span>}</th>
            <td>
              <Result request={one} /> <span className="quiet">{one.reason}</span>
            </td>
            <td className="number" data-label="times">{one.times}</td>
            <td className="number" data-label="last" title={one.lastAt}>{ago(one.lastAt, now)}</td>
            <td className="actions">{one.remedy && <Allow request={one} kind={one.remedy} network={network} session={session} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Result({ request }: { request: NetworkRequest }): ReactNode {
  const [look, sign] = LOOK[request.result];
  return <span className={`badge is-${look}`}><span aria-hidden="true">{sign}</span> {request.result}</span>;
}

/** Lets the agents of this session reach what one of them was refused. */
function Allow({ request, kind, network, session }: { request: NetworkRequest; kind: NetworkBody["kind"]; network: Shown; session: Watched }): ReactNode {
  const mas = useMas();
  const [busy, setBusy] = useState(false);
  const { place } = request;
  const change = async (remove: boolean): Promise<void> => {
    setBusy(true);
    try {
      const body: NetworkBody = { kind, places: [place], remove };
      const done = await mas.api.post<NetworkChange>(path`/sessions/${session.id}/network`, body);
      const words = `${remove ? "No longer allowed" : "Allowed"}: ${place} (${done.note})`;
      remove ? mas.notices.say(words) : mas.notices.say(words, () => void change(true));
    } catch (error) {
      mas.notices.fail(`Allow ${place}`, error);
    }
    await session.fetchNetwork();
    setBusy(false);
  };
  if (network[kind].includes(place)) return <span className="quiet">allowed since</span>;
  const title = kind === "private" ? "It is not public: it is added to the private names of this session" : "It is added to the allowed names of this session";
  return (
    <button type="button" disabled={busy} title={title} onClick={() => void change(false)}>
      Allow<span className="unseen"> {place}</span>{kind === "private" && " private"}
    </button>
  );
}
