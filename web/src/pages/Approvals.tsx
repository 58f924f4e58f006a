// Every agent of every session that waits for a person to decide.

import { useState, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { path } from "../protocol/api.ts";
import type { Approval } from "../protocol/shapes.ts";
import { useCell, useNow } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { askToNotify, canNotify } from "../state/notify.ts";
import { sessionHref } from "../state/route.ts";
import { ago } from "../state/words.ts";

export function ApprovalsPage(): ReactNode {
  const { live } = useMas();
  const { value, problem } = useCell(live.approvals);
  return (
    <>
      <div className="bar">
        <h1>Approvals</h1>
        <span className="grow" />
        <NotifyButton />
      </div>
      {problem && <ProblemBox problem={problem} retry={() => void live.fetchApprovals()} />}
      {!value && !problem && <Loading what="approvals" />}
      {value?.length === 0 && <Empty>No agent is waiting for an answer.</Empty>}
      <ul className="approvals">
        {value?.map((approval) => <Asking key={`${approval.sessionId}/${approval.agent}`} approval={approval} />)}
      </ul>
    </>
  );
}

/** One question, with its answers; also shown above the terminal of the agent that asks. */
export function Asking({ approval, small = false }: { approval: Approval; small?: boolean }): ReactNode {
  const mas = useMas();
  const now = useNow();
  const [busy, setBusy] = useState(false);
  const session = approval.sessionName ?? approval.sessionId.slice(0, 8);
  const answer = async (what: "approve" | "deny"): Promise<void> => {
    setBusy(true);
    try {
      await mas.api.post(path`/sessions/${approval.sessionId}/agents/${approval.agent}/${what}`);
      mas.notices.say(`${what === "approve" ? "Approved" : "Denied"}: ${approval.agent} ${approval.role}`);
    } catch (error) {
      mas.notices.fail(`Answer ${approval.agent}`, error);
    }
    await mas.live.fetchApprovals();
    setBusy(false);
  };
  const Tag = small ? "div" : "li";
  return (
    <Tag className="asking">
      {!small && (
        <header>
          <a href={sessionHref(approval.sessionId, "team", approval.agent)}><b>{approval.agent}</b> {approval.role}</a>
          <span className="quiet">{session} · {approval.provider} · {approval.kind} · {ago(approval.since, now)} · told by {approval.source}</span>
        </header>
      )}
      <p className="question">{approval.text || `It asks a question (${approval.kind})`}</p>
      {approval.screen && !small && <pre tabIndex={0} aria-label={`Screen of ${approval.agent}`}>{approval.screen.trimEnd()}</pre>}
      {approval.canAnswer ? (
        <div className="bar">
          <button type="button" className="strong" disabled={busy} onClick={() => void answer("approve")}>Approve<span className="unseen"> {approval.agent}</span></button>
          <button type="button" disabled={busy} onClick={() => void answer("deny")}>Deny<span className="unseen"> {approval.agent}</span></button>
        </div>
      ) : (
        <p className="quiet">{approval.whyNot} {approval.hint && <code>{approval.hint}</code>}</p>
      )}
    </Tag>
  );
}

function NotifyButton(): ReactNode {
  const [permission, setPermission] = useState(canNotify);
  if (permission === "missing") return null;
  if (permission === "granted") return <span className="quiet">This browser notifies you while the page is in the background.</span>;
  if (permission === "denied") return <span className="quiet">Notifications are blocked in this browser's settings.</span>;
  return (
    <button type="button" onClick={() => void askToNotify().then(setPermission)}>Notify me when an agent asks</button>
  );
}
