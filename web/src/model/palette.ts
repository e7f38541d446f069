// What can be put on the graph: the kinds of work, with what a new node of each begins with.

export interface Kind {
  readonly kind: string;
  readonly name: string;
  readonly icon: string;
  readonly about: string;
  /** The name of a new node. */
  readonly ref: string;
  readonly node: Record<string, unknown>;
}

const act = (kind: string, name: string, icon: string, about: string, ref: string, fields: Record<string, unknown> = {}): Kind => ({ kind, name, icon, about, ref, node: { action: { kind, ...fields } } });

export const PALETTE: readonly { readonly group: string; readonly kinds: readonly Kind[] }[] = [
  {
    group: "Do",
    kinds: [
      act("python", "Python", "python", "Calls a function", "compute", { function: "module:function" }),
      act("llm", "Model", "llm", "Asks a language model", "write", { prompt: "" }),
      act("http", "HTTP", "http", "Sends a request", "request", { url: "https://example.com/" }),
      act("mcp", "MCP tool", "mcp", "Calls a tool of an MCP server", "tool", { server: "server", tool: "tool" }),
      act("shell", "Shell", "shell", "Runs a program", "program", { argv: ["true"] }),
      act("work", "Work queue", "queue", "Waits for a worker to do it", "work", { name: "work" }),
    ],
  },
  {
    group: "Wait",
    kinds: [
      act("human", "Person", "person", "Asks a person", "ask", { title: "What shall be done?" }),
      act("wait", "Timer", "clock", "Waits for a time", "wait", { ms: 1000 }),
      act("signal", "Signal", "signal", "Waits for a signal", "listen", { name: "signal" }),
      act("workflow_call", "Sub-workflow", "flow", "Runs another workflow", "call", { workflow: "other" }),
      act("webhook", "Webhook", "hook", "Asks an outside worker and waits for its answer", "hook", { url: "https://example.com/" }),
    ],
  },
  {
    group: "Shape",
    kinds: [
      { kind: "fan", name: "Fan-out and join", icon: "fan", about: "Several branches, and a node at which they meet", ref: "branch", node: {} },
      { kind: "pass", name: "Pass-through", icon: "pass", about: "Does nothing: a place to branch or join", ref: "step", node: {} },
      act("set", "Set values", "braces", "Writes values", "set", { values: {} }),
      act("template", "Template", "text", "Renders a text", "text", { template: "" }),
      act("assert", "Assert", "check", "Fails unless a condition holds", "check", { condition: "true" }),
      act("emit", "Emit event", "emit", "Tells the outside", "tell", { type: "event" }),
      act("mock", "Stand-in", "mock", "Output, delay or failure on demand", "stand_in", { output: {} }),
    ],
  },
  {
    group: "Canvas",
    kinds: [
      { kind: "section", name: "Section", icon: "section", about: "A named area behind nodes; it is only drawn", ref: "section", node: {} },
      { kind: "note", name: "Note", icon: "doc", about: "A comment on the canvas; it is only drawn", ref: "note", node: {} },
    ],
  },
];

const BY_KIND = new Map(PALETTE.flatMap(({ kinds }) => kinds).map((kind) => [kind.kind, kind]));
const MORE: Record<string, [string, string]> = { send: ["Send signal", "send"], steps: ["Steps", "queue"], artifact_write: ["Write artifact", "box"], artifact_read: ["Read artifact", "box"], cancel_group: ["Cancel group", "stop"], add_siblings: ["Add branches", "fan"], close_group: ["Close group", "join"] };

/** The name and icon of a kind. */
export function kindLook(kind: string): { name: string; icon: string } {
  const known = BY_KIND.get(kind);
  if (known !== undefined) return known;
  const [name, icon] = MORE[kind] ?? [kind, "tool"];
  return { name, icon };
}

/** Kinds whose name or purpose has these letters. */
export function findKinds(text: string): { group: string; kinds: readonly Kind[] }[] {
  const wanted = text.trim().toLowerCase();
  return PALETTE.map(({ group, kinds }) => ({ group, kinds: kinds.filter((kind) => `${kind.name} ${kind.kind} ${kind.about}`.toLowerCase().includes(wanted)) })).filter(({ kinds }) => kinds.length > 0);
}

/** The kinds of work that a node can have. */
export const ACTIONS: readonly Kind[] = PALETTE.flatMap(({ kinds }) => kinds).filter((kind) => "action" in kind.node);
