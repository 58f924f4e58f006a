// The shapes of the API, by the names that the page has for them. They are made from the API's description, so a field that
// the server no longer has is an error of the check.

import type { Schemas } from "../../out/openapi.ts";

/** A shape some of whose fields have values that the description does not list. */
type Where<Shape, Fields extends { [Name in keyof Fields]: Name extends keyof Shape ? Shape[Name] : never }> = Omit<Shape, keyof Fields> & Fields;

export type Status = Schemas["Status"] | Schemas["Gone"];
export type AgentState = Schemas["State"];
export type DeliveryState = Schemas["DeliveryState"];

export type AgentRun = Schemas["AgentRun"];
export type AgentView = Where<Schemas["AgentView"], { state: AgentState }>;
export type AgentStats = Schemas["AgentStats"];
export type SessionInfo = Where<Schemas["SessionInfo"], { status: Status }>;
export type SessionDetail = Where<Schemas["SessionDetail"], { status: Status; agents: AgentView[] }>;
export type SessionList = Where<Schemas["SessionList"], { sessions: SessionInfo[] }>;
export type SessionStats = Where<Schemas["SessionStats"], { status: Status }>;
export type Stats = Where<Schemas["Stats"], { sessions: SessionStats[] }>;
export type Health = Schemas["Health"];

export type Message = Schemas["Message"];
export type MessageList = Schemas["MessageList"];
export type Sent = Schemas["Sent"];
export type Approval = Schemas["Approval"];
export type ApprovalList = Schemas["ApprovalList"];
export type Team = Schemas["TeamView"];
export type TeamList = Schemas["TeamList"];
export type TeamAgent = Schemas["Agent"];
export type Provider = Schemas["ProviderView"];
export type ProviderList = Schemas["ProviderList"];
export type FileListing = Schemas["FileListing"];
export type RunBody = Schemas["RunBody"];
export type NetworkView = Schemas["NetworkView"];
export type NetworkRequest = Schemas["NetworkRequest"];
export type NetworkBody = Schemas["NetworkBody"];
export type NetworkChange = Schemas["NetworkChange"];
export type TeamBody = Schemas["TeamBody"];
export type UnitBody = Schemas["UnitBody"];
export type AgentBody = Schemas["AgentBody"];
export type MessageBody = Schemas["MessageBody"];
export type RestartBody = Schemas["RestartBody"];
export type PortList = Schemas["PortList"];
export type Forward = Schemas["Forward"];
export type ForwardBody = Schemas["ForwardBody"];
export type ForwardList = Schemas["ForwardList"];
export type Greeting = Schemas["Greeting"];
export type PageAccess = Schemas["PageAccess"];
export type Ticket = Schemas["Ticket"];
export type Diagnosis = Schemas["Diagnosis"];
export type MasEvent = Schemas["EventFieldsPage"]["events"][number];
/** The events of one kind. */
export type EventOf<Kind extends MasEvent["event"]> = Extract<MasEvent, { event: Kind }>;
