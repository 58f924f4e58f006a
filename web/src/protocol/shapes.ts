// What the API answers, as far as the page looks at it. Fields with `?` come with later servers.

export type Status = "active" | "stopped" | "error" | "archived" | "deleted";
export type AgentState = "starting" | "idle" | "working" | "blocked" | "error" | "exited" | "unknown";

export interface AgentRun {
  id: string;
  unit: string;
  role: string;
  provider: string;
  model: string | null;
  pane: string | null;
}

export interface AgentView extends AgentRun {
  state: AgentState;
  stateText: string;
  stateSource: string;
  exitStatus: number | null;
  restarts: number;
  report: string | null;
}

export interface SessionInfo {
  sessionId: string;
  tmuxSession: string;
  name: string | null;
  status: Status;
  createdAt: string;
  lastActivity: string;
  workingDir: string;
  agentCount: number;
  agents: AgentRun[];
  tier?: string | null;
  /** When it stopped, or was found without its tmux session. */
  stoppedAt?: string | null;
  /** Nobody stopped it: its tmux session was gone. */
  lost?: boolean;
  /** Why it was stopped, where nobody asked for it. */
  reason?: string | null;
}

export interface SessionDetail extends Omit<SessionInfo, "agents" | "agentCount"> {
  startedAt: string;
  logs: Record<string, string>;
  agents: AgentView[];
  warnings: string[];
}

export interface SessionList {
  sessions: SessionInfo[];
  total: number;
  warnings: string[];
}

export interface SessionStats {
  sessionId: string;
  name: string | null;
  status: Status;
  agents: number;
  liveAgents: number;
  states: Partial<Record<AgentState, number>>;
  processes: number;
  disk: number;
  each?: AgentStats[];
  [more: string]: unknown;
}

export interface AgentStats {
  id: string;
  cpu: number;
  memory: number;
  processes: number;
}

export interface Stats {
  active: number;
  stopped: number;
  error: number;
  archived: number;
  deleted: number;
  liveAgents: number;
  disk: number;
  sessions: SessionStats[];
  host?: Record<string, number> | null;
  [more: string]: unknown;
}

export type DeliveryState = "queued" | "typed" | "acknowledged" | "undelivered";

export interface Delivery {
  agent: string;
  state: DeliveryState;
  at: string;
  reason: string | null;
}

export interface Message {
  id: string;
  from: string | null;
  target: string;
  message: string;
  createdAt: string;
  deliveries: Delivery[];
}

export interface MessageList {
  messages: Message[];
  total: number;
}

export interface Sent {
  id: string;
  agents: string[];
  deliveries: Delivery[];
}

export interface Approval {
  sessionId: string;
  sessionName: string | null;
  agent: string;
  unit: string;
  role: string;
  provider: string;
  kind: string;
  text: string;
  source: string;
  since: string;
  canAnswer: boolean;
  whyNot: string;
  hint: string;
  screen: string;
}

export interface TeamAgent {
  id: string;
  role: string;
  provider: string | null;
  model: string | null;
  command: string | null;
  prompt: string | null;
}

export interface Team {
  name: string;
  agentCount: number;
  units: { name: string; agents: TeamAgent[] }[];
  description: string;
  routing: string;
  origin: string;
  problem: string;
}

export interface Provider {
  id: string;
  description: string;
  isDefault: boolean;
  installed: boolean;
  problem: string;
  version: string | null;
  install: string;
}

export interface FileEntry {
  name: string;
  kind: "file" | "directory" | "link" | "other";
  size: number;
  modifiedAt: string;
}

export interface Check {
  name: string;
  ok: boolean;
  text: string;
  hint: string;
}

export interface MasEvent {
  id: string;
  at: string;
  event: "session" | "agent" | "message" | "report" | "approval" | "warning" | "retention" | "gap";
  sessionId?: string;
  agent?: string;
  [detail: string]: unknown;
}
