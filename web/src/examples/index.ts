// Examples that an empty installation offers: the files of the repository's own examples, word for word.
import approval from "../../../examples/approval.yaml?raw";
import order from "../../../examples/order.yaml?raw";
import panel from "../../../examples/panel.yaml?raw";

export interface Example {
  readonly workflow: string;
  readonly title: string;
  readonly about: string;
  readonly meta: string;
  readonly yaml: string;
  readonly input: unknown;
}

export const EXAMPLES: readonly Example[] = [
  { workflow: "approval", title: "Ask a person", about: "A request waits for an answer. Reminder, escalation and expiry are part of the picture.", meta: "3 nodes · waits for you", yaml: approval, input: { request: "two chairs" } },
  { workflow: "panel", title: "A panel that votes", about: "Seven judges, five answers suffice. See who arrived and who is missing.", meta: "5 nodes · some seconds", yaml: panel, input: { draft: "On looms" } },
  { workflow: "order", title: "An order that can be undone", about: "Reserve, charge, ship. If shipping fails, each step is taken back, newest first.", meta: "3 nodes · at once", yaml: order, input: { sku: "loom", amount: 40 } },
];
