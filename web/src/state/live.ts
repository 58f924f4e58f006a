// What the page knows, kept up to date by events: sessions, agents, messages, approvals.

import { path, told, type Api, type Problem } from "../protocol/api.ts";
import type { Hearing, Link } from "../protocol/feed.ts";
import type {
  AgentView,
  Approval,
  ApprovalList,
  DeliveryState,
  EventOf,
  MasEvent,
  Message,
  MessageList,
  NetworkView,
  SessionDetail,
  SessionInfo,
  SessionList,
  SessionStats,
  Stats,
} from "../protocol/shapes.ts";
import { Cell, Soon } from "./cell.ts";
import { Traffic } from "./traffic.ts";
import { titleOf } from "./words.ts";

const SOON = 150;
// Numbers cost the server more than lists do.
const STATS_SOON = 1000;
const FIRST_MESSAGES = 500;
const FIRST_REQUESTS = 300;
// The API returns no more than these at once.
const MOST_MESSAGES = 10_000;
const MOST_WARNINGS = 100;

/** Something that was loaded, is being loaded, or could not be. */
export interface Loaded<T> {
  value: T | null;
  problem: Problem | null;
}

export const LOADING: Loaded<never> = { value: null, problem: null };

/** One session that is shown. */
export class Watched {
  readonly detail = new Cell<Loaded<SessionDetail>>(LOADING);
  /** The newest, and how many there are in all. */
  readonly messages = new Cell<Loaded<Message[]>>(LOADING);
  readonly total = new Cell(0);
  readonly network = new Cell<Loaded<NetworkView>>(LOADING);
  /** The last message that was sent or delivered, for the drawing. */
  readonly moved = new Cell<{ from: string; to: string[]; id: string; at: number } | null>(null);
  readonly loadDetail: Soon;
  readonly loadMessages: Soon;
  readonly loadNetwork: Soon;
  watchers = 0;
  private most = FIRST_MESSAGES;
  /** For each load without an answer yet, the events since it began. */
  private readonly meanwhile = new Set<MasEvent[]>();

  constructor(
    readonly id: string,
    private readonly api: Api,
  ) {
    this.loadDetail = new Soon(() => this.fetchDetail(), SOON);
    this.loadMessages = new Soon(() => this.fetchMessages(), SOON);
    this.loadNetwork = new Soon(() => this.fetchNetwork(), STATS_SOON);
  }

  async fetchDetail(): Promise<void> {
    await this.look(this.detail, () => this.api.get<SessionDetail>(path`/sessions/${this.id}`));
  }

  async fetchMessages(): Promise<void> {
    await this.look(this.messages, async () => {
      const page = await this.api.get<MessageList>(path`/sessions/${this.id}/messages`, { limit: this.most });
      this.total.set(page.total);
      return page.messages;
    });
  }

  async fetchNetwork(): Promise<void> {
    await this.look(this.network, () => this.api.get<NetworkView>(path`/sessions/${this.id}/network`, { limit: FIRST_REQUESTS }));
  }

  /** Load twice as many messages. */
  async fetchOlder(): Promise<void> {
    this.most = Math.min(2 * this.most, MOST_MESSAGES);
    await this.fetchMessages();
  }

  hear(event: MasEvent): void {
    for (const told of this.meanwhile) told.push(event);
    if (event.event === "message" && event.state === "typed" && event.agent) {
      this.moved.set({ from: event.from ?? "person", to: [event.agent], id: event.messageId, at: Date.now() });
    }
    this.take(event);
  }

  /** Load into a cell. Events that come meanwhile may be newer than the answer, and are applied once more. */
  private async look<T>(cell: Cell<Loaded<T>>, load: () => Promise<T>): Promise<void> {
    const events: MasEvent[] = [];
    this.meanwhile.add(events);
    await into(cell, load);
    this.meanwhile.delete(events);
    for (const event of events) this.take(event);
  }

  private take(event: MasEvent): void {
    if (event.event === "agent") this.changeAgent(event, agentFields(event));
    else if (event.event === "report") this.changeAgent(event, { report: event.text });
    else if (event.event === "message") this.changeMessage(event);
    else if (event.event === "network" && this.network.isWatched) this.loadNetwork.ask();
    else if (event.event === "session") this.loadDetail.ask();
  }

  private changeAgent(event: MasEvent, fields: Partial<AgentView>): void {
    this.detail.change((was) => {
      if (!was.value) return was;
      const agents = was.value.agents.map((agent) => (agent.id === event.agent ? { ...agent, ...fields } : agent));
      return { ...was, value: { ...was.value, agents } };
    });
  }

  private changeMessage(event: EventOf<"message">): void {
    const known = this.messages.get().value;
    if (!known) return;
    const found = known.some((message) => message.id === event.messageId);
    if (found) this.messages.set({ value: known.map((one) => (one.id === event.messageId ? moved(one, event) : one)), problem: null });
    // Only a load shows the text of a new one, and why one was not delivered.
    if (!found || event.state === "undelivered") this.loadMessages.ask();
  }
}

export class Live implements Hearing {
  readonly connection = new Cell<Link>("connecting");
  readonly sessions = new Cell<Loaded<SessionInfo[]>>(LOADING);
  readonly stats = new Cell<ReadonlyMap<string, SessionStats>>(new Map());
  readonly approvals = new Cell<Loaded<Approval[]>>(LOADING);
  readonly warnings = new Cell<readonly EventOf<"warning">[]>([]);
  /** Why sessions stopped that no user stopped. */
  readonly failures = new Cell<readonly EventOf<"warning">[]>([]);
  /** Messages of all sessions, since the page was opened. */
  readonly traffic = new Traffic();
  private readonly watched = new Map<string, Watched>();
  private readonly stale = new Set<string>();
  private readonly ended = new Set<string>();
  private readonly loadSessions = new Soon(() => this.fetchSessions(), SOON);
  private readonly loadApprovals = new Soon(() => this.fetchApprovals(), SOON);
  private readonly loadStats = new Soon(() => this.fetchStale(), STATS_SOON);

  constructor(private readonly api: Api) {}

  /** Keep one session up to date until the answered function is called. */
  watch(id: string): { session: Watched; leave: () => void } {
    const session = this.watched.get(id) ?? new Watched(id, this.api);
    this.watched.set(id, session);
    session.watchers += 1;
    if (session.watchers === 1) void session.fetchDetail();
    const leave = (): void => {
      session.watchers -= 1;
      if (session.watchers === 0) this.watched.delete(id);
    };
    return { session, leave };
  }

  link(link: Link): void {
    const isBack = link === "live" && this.connection.get() !== "live";
    this.connection.set(link);
    // Events bring what was missed meanwhile, but not the loads that failed.
    if (isBack && this.hasFailed()) this.refresh();
  }

  private hasFailed(): boolean {
    const watched = [...this.watched.values()].flatMap((session) => [session.detail, session.messages]);
    return [this.sessions, this.approvals, ...watched].some((cell) => cell.get().problem !== null);
  }

  connected(fresh: boolean): void {
    if (fresh) this.refresh();
  }

  /** Look at everything again. */
  refresh(): void {
    this.loadSessions.ask();
    this.loadApprovals.ask();
    void this.fetchStats();
    for (const session of this.watched.values()) {
      session.loadDetail.ask();
      if (session.messages.get() !== LOADING) session.loadMessages.ask();
      if (session.network.isWatched) session.loadNetwork.ask();
    }
  }

  event(event: MasEvent): void {
    const id = event.sessionId;
    this.traffic.hear(event);
    if (event.event === "warning") this.warn(event);
    if (event.event === "session") this.loadSessions.ask();
    if (this.concernsApprovals(event)) this.loadApprovals.ask();
    if (!id) return;
    if (event.event === "session") event.status === "active" ? this.ended.delete(id) : this.ended.add(id);
    this.touch(id, event.at);
    if (event.event === "agent" || event.event === "session") {
      this.stale.add(id);
      this.catchUp();
    }
    this.watched.get(id)?.hear(event);
  }

  /** A session that was stopped on purpose is not warned of. */
  private warn(event: EventOf<"warning">): void {
    this.warnings.change((known) => [...known.slice(1 - MOST_WARNINGS), event]);
    if (event.sessionId && this.ended.has(event.sessionId)) this.failures.change((known) => [...known.slice(1 - MOST_WARNINGS), event]);
  }

  /** What people call a session. */
  titleOf(id: string): string {
    const found = this.sessions.get().value?.find((session) => session.sessionId === id);
    return found ? titleOf(found) : id;
  }

  /** Bring the numbers that are shown up to date; the others are only marked as old. */
  catchUp(): void {
    if (this.stats.isWatched && this.stale.size > 0) this.loadStats.ask();
  }

  /** Whether an agent may have begun or ceased to ask; most that agents do is neither. */
  private concernsApprovals(event: MasEvent): boolean {
    if (event.event === "approval" || event.event === "session") return true;
    if (event.event !== "agent") return false;
    const known = this.approvals.get().value ?? [];
    return event.state === "blocked" || known.some((one) => one.sessionId === event.sessionId && one.agent === event.agent);
  }

  private touch(id: string, at: string): void {
    this.sessions.change((was) => {
      const found = was.value?.find((session) => session.sessionId === id);
      if (!was.value || !found || found.lastActivity >= at) return was;
      const value = was.value.map((session) => (session === found ? { ...session, lastActivity: at } : session));
      return { ...was, value };
    });
  }

  async fetchSessions(): Promise<void> {
    await into(this.sessions, async () => (await this.api.get<SessionList>("/sessions")).sessions);
  }

  async fetchApprovals(): Promise<void> {
    await into(this.approvals, async () => (await this.api.get<ApprovalList>("/approvals")).approvals);
  }

  async fetchStats(): Promise<void> {
    try {
      const all = await this.api.get<Stats>("/stats");
      this.stats.set(new Map(all.sessions.map((one) => [one.sessionId, one])));
    } catch {
      // The list says what is wrong; without numbers it is still a list.
    }
  }

  private async fetchStale(): Promise<void> {
    const ids = [...this.stale];
    this.stale.clear();
    if (ids.length > 5) {
      await this.fetchStats();
      return;
    }
    const known = new Map(this.stats.get());
    for (const id of ids) {
      try {
        known.set(id, await this.api.get<SessionStats>(path`/sessions/${id}/stats`));
      } catch {
        known.delete(id);
      }
    }
    this.stats.set(known);
  }
}

/** Load into a cell; what was there stays while loading, and when it fails. */
async function into<T>(cell: Cell<Loaded<T>>, load: () => Promise<T>): Promise<void> {
  try {
    cell.set({ value: await load(), problem: null });
  } catch (error) {
    const problem = told(error);
    cell.change((was) => ({ value: problem.mayPass ? was.value : null, problem }));
  }
}

function agentFields({ state, stateText, stateSource, exitStatus = null }: EventOf<"agent">): Partial<AgentView> {
  return { state, stateText, stateSource, exitStatus };
}

function moved(message: Message, event: EventOf<"message">): Message {
  const { state } = event;
  const deliveries = message.deliveries.map((delivery) =>
    (event.agent === undefined || delivery.agent === event.agent) && further(delivery.state, state)
      ? { ...delivery, state, at: event.at }
      : delivery,
  );
  return { ...message, deliveries };
}

const ORDER: readonly DeliveryState[] = ["queued", "typed", "undelivered", "acknowledged"];

/** Whether a delivery goes on from one state to the other; events may come late. */
function further(from: DeliveryState, to: DeliveryState): boolean {
  return ORDER.indexOf(to) > ORDER.indexOf(from);
}
