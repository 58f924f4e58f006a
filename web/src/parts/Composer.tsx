// Write to an agent, a unit, the managers or all.

import { useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";
import type { SessionDetail } from "../protocol/shapes.ts";
import { path, told, type Problem } from "../protocol/api.ts";
import type { MessageBody, Sent } from "../protocol/shapes.ts";
import { useDraft } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { useMas } from "../state/mas.ts";
import { randomHex } from "../state/random.ts";
import { count } from "../state/words.ts";
import { Dialog, ProblemBox } from "./basics.tsx";

interface Props {
  session: Watched;
  detail: SessionDetail;
  /** The target, unless another is chosen. */
  target: string;
  fixed?: boolean;
  sent?: () => void;
}

export function Composer({ session, detail, target: first, fixed = false, sent }: Props): ReactNode {
  const mas = useMas();
  const draft = `${detail.sessionId}/${fixed ? first : ""}`;
  const [chosen, setTarget] = useDraft(`${draft}/to`);
  const [text, setText] = useDraft(draft);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const to = fixed ? first : chosen || first;
  // Sent again after no answer came, it is the same message.
  const id = useRef<string | null>(null);
  // Whoever was chosen and not written to is not meant any more.
  useEffect(() => {
    if (!text) setTarget("");
  }, []);
  const send = async (): Promise<void> => {
    if (!text.trim() || busy) return;
    setBusy(true);
    setProblem(null);
    id.current ??= `m-${randomHex(8)}`;
    try {
      const answer = await mas.api.post<Sent>(path`/sessions/${detail.sessionId}/messages`, { target: to, message: text, id: id.current } satisfies MessageBody);
      id.current = null;
      setText("");
      setTarget("");
      session.loadMessages.ask();
      mas.notices.say(`Sent to ${answer.agents.length === 1 ? answer.agents[0] : count(answer.agents.length, "agent")}`);
      sent?.();
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void send();
  };
  return (
    <form className="composer" onSubmit={(event) => (event.preventDefault(), void send())}>
      {!fixed && <Target value={to} change={(next) => ((id.current = null), setTarget(next))} detail={detail} />}
      <textarea
        aria-label={fixed ? `Message to ${first}` : "Message"}
        rows={3}
        placeholder={detail.status === "active" ? "Message" : "The session is not running: restore it to send a message"}
        value={text}
        onChange={(event) => {
          id.current = null;
          setText(event.target.value);
        }}
        onKeyDown={pressed}
      />
      {problem && <ProblemBox problem={problem} />}
      <button type="submit" className="strong" disabled={busy || !text.trim()}>Send <kbd>Ctrl ↵</kbd></button>
    </form>
  );
}

function Target({ value, change, detail }: { value: string; change: (target: string) => void; detail: SessionDetail }): ReactNode {
  const units = [...new Set(detail.agents.map((agent) => agent.unit))];
  return (
    <label className="target">
      To{" "}
      <select value={value} onChange={(event) => change(event.target.value)}>
        <option value="all">all</option>
        <option value="managers">managers</option>
        <optgroup label="Units">{units.map((unit) => <option key={unit} value={unit}>{unit}</option>)}</optgroup>
        <optgroup label="Agents">
          {detail.agents.map((agent) => <option key={agent.id} value={agent.id}>{agent.id} {agent.role}</option>)}
        </optgroup>
      </select>
    </label>
  );
}

export function ComposerDialog({ close, ...props }: Props & { close: () => void }): ReactNode {
  return (
    <Dialog title="Write a message" close={close}>
      <h2>Write a message</h2>
      <Composer {...props} sent={close} />
    </Dialog>
  );
}
