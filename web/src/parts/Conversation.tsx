// What was written to and by one agent, and a place to write to it.

import { useEffect, useMemo, useRef, type ReactNode } from "react";
import type { Message, SessionDetail } from "../protocol/shapes.ts";
import { useCell } from "../state/hooks.ts";
import type { Watched } from "../state/live.ts";
import { Loading, ProblemBox } from "./basics.tsx";
import { Composer } from "./Composer.tsx";
import { MessageItem } from "./MessageItem.tsx";

export function Conversation({ session, detail, agent }: { session: Watched; detail: SessionDetail; agent: string }): ReactNode {
  const { value, problem } = useCell(session.messages);
  const own = useMemo(
    () => value?.filter((message) => message.from === agent || message.deliveries.some((delivery) => delivery.agent === agent)),
    [value, agent],
  );
  return (
    <aside className="conversation" aria-label={`Messages of ${agent}`}>
      <h2>Messages</h2>
      {problem && <ProblemBox problem={problem} retry={() => void session.fetchMessages()} />}
      {!own && !problem && <Loading what="messages" />}
      {own?.length === 0 && <p className="quiet">Nothing was written to or by {agent} yet.</p>}
      {own && own.length > 0 && <MessageList messages={own} />}
      <Composer key={agent} session={session} detail={detail} target={agent} fixed />
    </aside>
  );
}

/** Messages, newest last; stays at the end unless one has scrolled up. */
export function MessageList({ messages }: { messages: readonly Message[] }): ReactNode {
  const list = useRef<HTMLUListElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [messages]);
  return (
    <ul
      className="messages"
      ref={list}
      tabIndex={0}
      aria-label="Messages"
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      {messages.map((message) => <MessageItem key={message.id} message={message} />)}
    </ul>
  );
}
