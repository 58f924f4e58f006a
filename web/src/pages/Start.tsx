// Start a team: which, with what, under which name; each agent's own model and prompt if wanted.

import { useEffect, useId, useRef, useState, type FormEvent, type ReactNode } from "react";
import { Loading, ProblemBox } from "../parts/basics.tsx";
import { told, type FieldError, type Problem } from "../protocol/api.ts";
import type { Provider, ProviderList, SessionDetail, Team, TeamList } from "../protocol/shapes.ts";
import { keepDraft, readDraft } from "../state/drafts.ts";
import { useLoaded } from "../state/hooks.ts";
import { useMas } from "../state/mas.ts";
import { randomHex } from "../state/random.ts";
import { sessionHref } from "../state/route.ts";
import { errorFor, runBody, type RunForm, type Wanted } from "../state/run.ts";
import { count } from "../state/words.ts";

const EMPTY: RunForm = { name: "", team: "", provider: "", isolation: "", limits: {}, agents: {} };
const DRAFT = "start";

interface Choices {
  teams: Team[];
  providers: Provider[];
  /** The fields that this server's API takes for a run. */
  fields: Record<string, FieldSchema>;
}

interface FieldSchema {
  enum?: string[];
  anyOf?: FieldSchema[];
  properties?: Record<string, FieldSchema>;
  $ref?: string;
}

export function StartPage(): ReactNode {
  const { api } = useMas();
  const loaded = useLoaded<Choices>(async () => {
    const [teams, providers, fields] = await Promise.all([
      api.get<TeamList>("/teams"),
      api.get<ProviderList>("/providers"),
      runFields(() => api.get("/openapi.json")),
    ]);
    return { teams: teams.teams, providers: providers.providers, fields };
  }, [api]);
  return (
    <>
      <h1>Start a team</h1>
      {loaded.problem && <ProblemBox problem={loaded.problem} retry={loaded.again} />}
      {!loaded.value && !loaded.problem && <Loading what="teams" />}
      {loaded.value && <Form choices={loaded.value} />}
    </>
  );
}

function Form({ choices }: { choices: Choices }): ReactNode {
  const mas = useMas();
  const [form, setForm] = useState<RunForm>(readForm);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const place = useRef<HTMLFormElement>(null);
  // Asked again after no answer came, the server starts nothing twice.
  const key = useRef<string | null>(null);
  useEffect(() => keepDraft(DRAFT, form === EMPTY ? "" : JSON.stringify(form)), [form]);
  useEffect(() => place.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus(), [problem]);
  const usual = choices.teams.find((team) => team.name === "default") ?? choices.teams[0];
  const team = choices.teams.find((one) => one.name === form.team) ?? usual;
  const change = (fields: Partial<RunForm>): void => {
    key.current = null;
    setForm({ ...form, ...fields });
  };
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    key.current ??= randomHex(16);
    try {
      const made = await mas.api.post<SessionDetail>("/runs", runBody(form, team), { "Idempotency-Key": key.current });
      keepDraft(DRAFT, "");
      for (const warning of made.warnings) mas.notices.say(warning);
      await mas.live.fetchSessions();
      location.hash = sessionHref(made.sessionId);
    } catch (error) {
      setProblem(told(error));
    } finally {
      setBusy(false);
    }
  };
  const errors = problem?.errors ?? [];
  const part: Part = { form, change, errors };
  const own = choices.providers.find((provider) => provider.isDefault)?.id;
  return (
    <form className="start" ref={place} onSubmit={(event) => void submit(event)}>
      <Field label="Name" error={errorFor(errors, "name")}>
        {(props) => <input {...props} placeholder="optional, such as what it is for" value={form.name} onChange={(event) => change({ name: event.target.value })} />}
      </Field>
      <Field label="Team" error={errorFor(errors, "team") || team?.problem || ""} more={team?.description}>
        {(props) => (
          <select {...props} value={team?.name ?? ""} onChange={(event) => change({ team: event.target.value, agents: {} })}>
            {choices.teams.map((one) => <option key={one.name} value={one.name}>{one.name} ({count(one.agentCount, "agent")})</option>)}
          </select>
        )}
      </Field>
      <Field label="Provider" error={errorFor(errors, "provider")}>
        {(props) => (
          <ProviderSelect {...props} value={form.provider} usual={`the workspace's${own ? ` (${own})` : ""}`} providers={choices.providers} change={(provider) => change({ provider })} />
        )}
      </Field>
      <Isolation {...part} field={choices.fields.isolation} />
      <Limits {...part} field={choices.fields.limits} />
      {team && <Agents key={team.name} {...part} team={team} providers={choices.providers} />}
      {problem && <ProblemBox problem={problem} />}
      <div className="bar">
        <button type="submit" className="strong" disabled={busy}>{busy ? "Starting…" : `Start ${count(team?.agentCount ?? 0, "agent")}`}</button>
        <button type="button" onClick={() => ((key.current = null), setForm(EMPTY), setProblem(null))}>Clear</button>
      </div>
    </form>
  );
}

/** What every control of a field has: a name, and what is wrong with it. */
interface Control {
  id?: string;
  "aria-label"?: string;
  "aria-invalid"?: boolean;
  "aria-describedby"?: string | undefined;
}

function Field({ label, error, more = "", children }: { label: string; error: string; more?: string | undefined; children: (props: Control) => ReactNode }): ReactNode {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({ id, "aria-invalid": error !== "", "aria-describedby": error ? `${id}-error` : undefined })}
      {more && <p className="quiet more">{more}</p>}
      {error && <p className="wrong" id={`${id}-error`}>{error}</p>}
    </div>
  );
}

interface ProviderProps extends Control {
  value: string;
  usual: string;
  providers: readonly Provider[];
  change: (value: string) => void;
}

function ProviderSelect({ usual, providers, change, ...props }: ProviderProps): ReactNode {
  return (
    <select {...props} onChange={(event) => change(event.target.value)}>
      <option value="">{usual}</option>
      {providers.map((provider) => (
        <option key={provider.id} value={provider.id} title={provider.problem || provider.description}>
          {provider.id}{provider.installed ? "" : " (not installed)"}
        </option>
      ))}
    </select>
  );
}

interface Part {
  form: RunForm;
  change: (fields: Partial<RunForm>) => void;
  errors: readonly FieldError[];
}

const MEANT: Record<string, string> = {
  auto: "auto: as much as this machine supports",
  require: "require: full isolation, or do not start",
  off: "off: file permissions only",
};

function Isolation({ field, form, change, errors }: Part & { field: FieldSchema | undefined }): ReactNode {
  if (!field) return null;
  const words = field.enum ?? field.anyOf?.find((one) => one.enum)?.enum ?? [];
  return (
    <Field label="Isolation" error={errorFor(errors, "isolation")}>
      {(props) => (
        <select {...props} value={form.isolation} onChange={(event) => change({ isolation: event.target.value })}>
          <option value="">the workspace's</option>
          {words.map((word) => <option key={word} value={word}>{MEANT[word] ?? word}</option>)}
        </select>
      )}
    </Field>
  );
}

const FOR_EXAMPLE: Record<string, string> = { memory: "2GiB", processes: "200", cpu: "1.5", files: "1024", fileSize: "1GiB", disk: "10GiB" };

function Limits({ field, form, change, errors }: Part & { field: FieldSchema | undefined }): ReactNode {
  const known = Object.entries(field?.properties ?? {});
  if (known.length === 0) return null;
  const each = known.find(([, inner]) => inner.properties);
  const rows: [string, string, string[]][] = [["Whole session", "", known.filter(([, inner]) => !inner.properties).map(([name]) => name)]];
  if (each) rows.push(["Each agent", `${each[0]}.`, Object.keys(each[1].properties ?? {})]);
  return (
    <Fold title="Limits" open={Object.values(form.limits).some(Boolean)} wrong={errorFor(errors, "limits") !== ""}>
      <p className="quiet">Empty fields use the limits of the workspace or the team.</p>
      {rows.map(([label, prefix, names]) => (
        <fieldset key={label} className="limits">
          <legend>{label}</legend>
          {names.map((name) => {
            const error = errorFor(errors, `limits.${prefix}${name}`);
            return (
              <label key={name}>
                {words(name)}
                <input
                  aria-label={`${label}: ${words(name)}`}
                  aria-invalid={error !== ""}
                  placeholder={FOR_EXAMPLE[name] && `such as ${FOR_EXAMPLE[name]}`}
                  value={form.limits[prefix + name] ?? ""}
                  onChange={(event) => change({ limits: { ...form.limits, [prefix + name]: event.target.value } })}
                />
                {error && <span className="wrong">{error}</span>}
              </label>
            );
          })}
        </fieldset>
      ))}
    </Fold>
  );
}

/** Shown when asked for; opens by itself where something in it is wrong. */
function Fold({ title, open, wrong, children }: { title: string; open: boolean; wrong: boolean; children: ReactNode }): ReactNode {
  const [isOpen, setOpen] = useState(open);
  useEffect(() => {
    if (wrong) setOpen(true);
  }, [wrong]);
  return (
    <details className="agents" open={isOpen || wrong} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** A name of the API as people would write it. */
function words(name: string): string {
  return name.replace(/([A-Z])/g, " $1").toLowerCase();
}

function Agents({ team, providers, form, change, errors }: Part & { team: Team; providers: readonly Provider[] }): ReactNode {
  const differ = (id: string, fields: Partial<Wanted>): void => change({ agents: { ...form.agents, [id]: { ...form.agents[id], ...fields } } });
  return (
    <Fold title="Provider, model and prompt per agent" open={Object.keys(form.agents).length > 0} wrong={errorFor(errors, "agents") !== ""}>
      {team.units.map((unit) => (
        <fieldset key={unit.name}>
          <legend>{unit.name}</legend>
          {unit.agents.map((agent) => {
            const wanted = form.agents[agent.id] ?? {};
            const error = errorFor(errors, `agents.${agent.id}`);
            return (
              <div key={agent.id} className="agent-row">
                <span><b>{agent.id}</b> {agent.role}</span>
                <ProviderSelect aria-label={`Provider of ${agent.id}`} aria-invalid={error !== ""} value={wanted.provider ?? ""} usual={agent.provider ?? "as above"} providers={providers} change={(provider) => differ(agent.id, { provider })} />
                <input aria-label={`Model of ${agent.id}`} placeholder={agent.model ?? "model"} value={wanted.model ?? ""} onChange={(event) => differ(agent.id, { model: event.target.value })} />
                <textarea aria-label={`Prompt of ${agent.id}`} rows={1} placeholder={agent.prompt ?? "first message"} value={wanted.prompt ?? ""} onChange={(event) => differ(agent.id, { prompt: event.target.value })} />
                {error && <p className="wrong">{error}</p>}
              </div>
            );
          })}
        </fieldset>
      ))}
    </Fold>
  );
}

function readForm(): RunForm {
  try {
    const kept = readDraft(DRAFT);
    return kept ? { ...EMPTY, ...(JSON.parse(kept) as RunForm) } : EMPTY;
  } catch {
    return EMPTY;
  }
}

/** What a field refers to, where it is an object; its own fields too. */
function resolved(field: FieldSchema, schemas: Record<string, FieldSchema>): FieldSchema {
  if (field.enum ?? field.anyOf?.some((one) => one.enum)) return field;
  const ref = field.$ref ?? field.anyOf?.find((one) => one.$ref)?.$ref;
  const found = ref && schemas[ref.replace("#/components/schemas/", "")];
  if (!found) return field;
  const inner = Object.entries(found.properties ?? {}).map(([name, one]) => [name, resolved(one, schemas)] as const);
  return { ...found, properties: Object.fromEntries(inner) };
}

/** What the API itself says a run can have; without that, what every server takes. */
async function runFields(load: () => Promise<unknown>): Promise<Choices["fields"]> {
  try {
    const { components } = (await load()) as { components: { schemas: Record<string, FieldSchema> } };
    const fields = { ...(components.schemas.RunBody?.properties ?? {}) } as Choices["fields"];
    for (const [name, field] of Object.entries(fields)) {
      fields[name] = resolved(field, components.schemas);
    }
    return fields;
  } catch {
    return {};
  }
}
