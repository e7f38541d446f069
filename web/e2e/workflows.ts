// Workflows that several browser tests run, and what starts and answers them.
import { expect, type Server } from "./fixtures";

/** Five branches that meet, then a person, then the end. */
export const PANEL = `
workflow: e2e-panel
start: brief
nodes:
  brief: {action: {kind: set, values: {seats: [1, 2, 3, 4, 5]}}, output_mapping: {state.seats: $.seats}}
  judge: {action: {kind: mock, output: {vote: aye}, after_ms: 400}, output_mapping: {state.vote: $.vote}}
  decide: {}
  approve:
    action: {kind: human, title: Publish it?, form: {type: object, required: [ok], properties: {ok: {type: boolean}}}}
  publish: {}
transitions:
  - {id: panel, from: brief, to: judge, foreach: {collection: state.seats, item_var: seat}}
  - {from: judge, to: decide, synchronization: {sibling_group: panel, strategy: all, merge: {source: _branch.output.vote, target: state.votes, strategy: append}}}
  - {from: decide, to: approve}
  - {from: approve, to: publish}
`;

export const BROKEN = `
workflow: e2e-broken
start: check
nodes:
  check: {action: {kind: assert, condition: "1 == 2", message: the sum is wrong}}
`;

/** Three branches whose work the test does itself; a join that needs all of them. */
export const HANDS = `
workflow: e2e-hands
start: split
nodes:
  split: {action: {kind: set, values: {parts: [a, b, c]}}, output_mapping: {state.parts: $.parts}}
  check: {queue: hands, action: {kind: work, name: check}}
  gather: {}
transitions:
  - {id: parts, from: split, to: check, foreach: {collection: state.parts, item_var: part}}
  - {from: check, to: gather, synchronization: {sibling_group: parts, strategy: all, on_branch_failure: fail}}
`;

/** Fails when two visits are done; the later of them cannot be undone. */
export const UNDOING = `
workflow: e2e-undoing
start: book
nodes:
  book: {action: {kind: set, values: {}}, compensate: {action: {kind: set, values: {}}}}
  pay: {action: {kind: set, values: {}}, compensate: {action: {kind: assert, condition: "1 == 2", message: the money is gone}}}
  ship: {action: {kind: assert, condition: "1 == 2", message: no lorry}}
transitions:
  - {from: book, to: pay}
  - {from: pay, to: ship}
`;

/** Goes round three times, then ends. */
export const ROUND = `
workflow: e2e-round
start: draft
nodes:
  draft: {action: {kind: set, values: {done: true}}, output_mapping: {state.done: $.done}}
  check: {}
  end: {}
transitions:
  - {from: draft, to: check}
  - {id: again, from: check, to: draft, priority: 1, loop: {max_iterations: 2}}
  - {from: check, to: end, priority: 2}
`;

export async function started(server: Server, yaml: string, workflow: string): Promise<string> {
  await server.deploy(yaml);
  return (await server.api<{ run: string }>("POST", "/runs", { workflow })).run;
}

/** The gate of a run, when it is open. */
export async function gateOf(server: Server, run: string): Promise<number> {
  let found: { visit: number }[] = [];
  await expect.poll(async () => (found = (await server.api<{ items: { visit: number }[] }>("GET", `/gates?run=${run}`)).items).length).toBe(1);
  return found[0]?.visit ?? 0;
}

export async function answer(server: Server, run: string): Promise<void> {
  await server.api("POST", `/gates/${run}/${await gateOf(server, run)}/answer`, { data: { ok: true } });
}

export const statusOf = (server: Server, run: string) => async (): Promise<string> => (await server.api<{ status: string }>("GET", `/runs/${run}`)).status;

export async function lengthOf(server: Server, run: string): Promise<number> {
  return (await server.api<{ items: unknown[] }>("GET", `/runs/${run}/history?limit=1000`)).items.length;
}

interface Task {
  readonly task: string;
  readonly visit: number;
}

/** Takes work of the queue `hands`, as a worker does. */
export async function claim(server: Server, limit: number): Promise<Task[]> {
  return (await server.api<{ tasks: Task[] }>("POST", "/tasks/claim", { queues: ["hands"], worker: "test", limit, lease_ms: 60_000, wait_ms: 20_000 })).tasks;
}
