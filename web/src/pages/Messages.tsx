// All messages of a session in one timeline, and a place to write to anybody.

import { useMemo, useState, type ReactNode } from "react";
import { Empty, Loading, ProblemBox } from "../parts/basics.tsx";
import { Composer } from "../parts/Composer.tsx";
import { MessageList } from "../parts/Conversation.tsx";
import { Organisation } from "../parts/Organisation.tsx";
import type { SessionDetail } from "../protocol/shapes.ts";
import { useCell } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";

export function MessagesView({ session, detail }: { session: Watched; detail: SessionDetail }): ReactNode {
  const { value, problem } = useCell(session.messages);
  const total = useCell(session.total);
  const [agent, setAgent] = useState("");
  const shown = useMemo(
    () => value?.filter((message) => !agent || message.from === agent || message.target === agent || message.deliveries.some((one) => one.agent === agent)),
    [value, agent],
  );
  return (
    <div className="timeline">
      <section aria-label="Timeline">
        <label className="target">
          Show{" "}
          <select value={agent} onChange={(event) => setAgent(event.target.value)}>
            <option value="">everybody</option>
            {detail.agents.map((one) => <option key={one.id} value={one.id}>{one.id} {one.role}</option>)}
          </select>
        </label>
        {problem && <ProblemBox problem={problem} retry={() => void session.fetchMessages()} />}
        {!shown && !problem && <Loading what="messages" />}
        {shown?.length === 0 && <Empty>No messages yet. Write one; the agents answer if they can.</Empty>}
        {value && value.length < total && (
          <p className="quiet">
            The newest {value.length} of {total}. <button type="button" className="plain" onClick={() => void session.fetchOlder()}>Show older</button>
          </p>
        )}
        {shown && shown.length > 0 && <MessageList messages={shown} />}
      </section>
      <section aria-label="Write">
        <Organisation session={session} agents={detail.agents} />
        <Composer session={session} detail={detail} target="all" />
      </section>
    </div>
  );
}
