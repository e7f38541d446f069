// Edits of a YAML document as edits of its text. A value is set, removed or renamed where it stands: every other line,
// and every comment, stays as it was written. What cannot be done by a splice is done by the parser's own document.
import { Document, isCollection, isMap, isPair, isScalar, isSeq, parse, parseDocument, visit, type Node, type Pair, type YAMLMap, type YAMLSeq } from "yaml";

export type Path = readonly (string | number)[];
type Collection = YAMLMap<Node, Node | null> | YAMLSeq<Node>;

const WIDTH = 110;

const lineStart = (text: string, at: number): number => text.lastIndexOf("\n", at - 1) + 1;
const lineEnd = (text: string, at: number): number => {
  const found = text.indexOf("\n", at);
  return found === -1 ? text.length : found;
};
const columnOf = (text: string, at: number): number => at - lineStart(text, at);
const startOf = (node: Node): number => node.range?.[0] ?? 0;
const endOf = (node: Node): number => node.range?.[1] ?? 0;

/** A value on one line, as a flow collection or a scalar. */
export function inline(value: unknown): string {
  const document = new Document(value);
  visit(document, { Collection: (_key, node) => void (node.flow = true) });
  return document.toString({ lineWidth: 0, flowCollectionPadding: false }).trimEnd();
}

/** A value for a place in a block: on the same line where it fits, else as lines of their own. */
function block(value: unknown, indent: number): string {
  const short = inline(value);
  const isList = indent <= 2 && Array.isArray(value) && value.some((one) => one !== null && typeof one === "object"); // the first transition
  if (isList) return `\n${value.map((one) => " ".repeat(indent) + itemLine(one, indent, false)).join("\n")}`;
  const isFirst = indent <= 2 && value !== null && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length > 0 && Object.values(value).every((one) => one !== null && typeof one === "object" && !Array.isArray(one)); // the first node
  if (isFirst) return `\n${Object.entries(value).map(([key, one]) => " ".repeat(indent) + pairLine(key, one, indent, false)).join("\n")}`;
  if (value === null || typeof value !== "object" || (short.length + indent < WIDTH && depth(value) < 4) || Object.keys(value).length === 0) {
    if (typeof value === "string" && value.includes("\n")) return new Document(value).toString({ lineWidth: 0 }).trimEnd().split("\n").map((line, at) => (at === 0 || line === "" ? line : " ".repeat(indent) + line)).join("\n");
    return ` ${short}`.slice(1);
  }
  const document = new Document(value);
  visit(document, { Collection: (_key, node, path) => void (node.flow = path.length > 1 && inline(node.toJSON()).length < WIDTH - indent) });
  const lines = document.toString({ lineWidth: 0, flowCollectionPadding: false, indentSeq: true }).trimEnd().split("\n");
  return `\n${lines.map((line) => (line === "" ? line : " ".repeat(indent) + line)).join("\n")}`;
}

const depth = (value: unknown): number => (value === null || typeof value !== "object" ? 0 : 1 + Math.max(0, ...Object.values(value).map(depth)));

const pairLine = (key: string, value: unknown, indent: number, flow: boolean): string => {
  const name = inline(key);
  if (flow) return `${name}: ${inline(value)}`;
  const shown = block(value, indent + 2);
  return shown.startsWith("\n") ? `${name}:${shown}` : `${name}: ${shown}`;
};

const itemLine = (value: unknown, indent: number, flow: boolean): string => {
  if (flow) return inline(value);
  const shown = block(value, indent + 2);
  return `- ${shown.startsWith("\n") ? shown.trimStart() : shown}`;
};

interface Found {
  readonly node: Collection;
  readonly item: Pair<Node, Node | null> | Node | undefined;
  readonly index: number;
}

function locate(document: Document, path: Path): Found | null {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (!isCollection(parent)) return null;
  const key = path.at(-1);
  const items = parent.items as (Pair<Node, Node | null> | Node)[];
  const index = isSeq(parent) ? Number(key) : items.findIndex((item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(key));
  return { node: parent as Collection, item: items[index], index: items[index] === undefined ? -1 : index };
}

/** Where an item of a collection begins and ends in the text. */
function span(item: Pair<Node, Node | null> | Node): [number, number] {
  if (!isPair(item)) return [startOf(item), endOf(item)];
  const key = item.key as Node;
  const value = item.value as Node | null;
  return [startOf(key), value === null ? endOf(key) : Math.max(endOf(value), endOf(key))];
}

const splice = (text: string, from: number, to: number, put: string): string => text.slice(0, from) + put + text.slice(to);

/** The end of an item's last line: a block scalar ends behind its line break already. */
function tail(text: string, at: number): number {
  let end = at;
  while (end > 0 && text[end - 1] === "\n") end -= 1;
  return lineEnd(text, end);
}

const equal = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);

/** The splice if it says what is meant, else the whole document written anew. */
function checked(text: string, edited: string | null, change: (document: Document) => void): string {
  const meant = parseDocument(text);
  change(meant);
  if (edited !== null) {
    try {
      if (equal(parse(edited), meant.toJS())) return edited;
    } catch {
      // the splice broke the text: below it is written anew
    }
  }
  return meant.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** Sets the value at a path; what is missing on the way is made. */
export function setIn(text: string, path: Path, value: unknown): string {
  const document = parseDocument(text);
  if (document.errors.length > 0) return text;
  if (equal(document.getIn(path), undefined) ? false : equal(toJS(document.getIn(path, true)), value)) return text;
  return checked(text, spliceSet(text, document, path, value), (meant) => meant.setIn(path, meant.createNode(value)));
}

const toJS = (node: unknown): unknown => (node === undefined ? undefined : (JSON.parse(JSON.stringify(node ?? null)) as unknown));

function spliceSet(text: string, document: Document, path: Path, value: unknown): string | null {
  if (document.contents === null) return `${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${pairLine(String(path[0]), nest(path.slice(1), value), 0, false)}\n`;
  const found = locate(document, path);
  if (found === null) return path.length > 1 ? spliceSet(text, document, path.slice(0, -1), nest(path.slice(-1), value)) : null;
  if (found.item === undefined) return insert(text, found.node, path, value, document);
  return replace(text, found, value);
}

const nest = (path: Path, value: unknown): unknown => path.reduceRight<unknown>((inner, key) => (typeof key === "number" ? [inner] : { [key]: inner }), value);

function replace(text: string, { node, item }: Found, value: unknown): string {
  if (!isPair(item)) {
    const from = startOf(item as Node);
    return splice(text, from, endOf(item as Node), node.flow === true ? inline(value) : itemLine(value, columnOf(text, from) - 2, false).slice(2));
  }
  const key = item.key as Node;
  const old = item.value as Node | null;
  const indent = node.flow === true ? 0 : columnOf(text, startOf(key));
  const shown = node.flow === true ? inline(value) : block(value, indent + 2);
  const colon = text.indexOf(":", endOf(key)) + 1;
  if (old === null || startOf(old) === endOf(old)) return splice(text, colon, colon, shown.startsWith("\n") ? shown : ` ${shown}`);
  let end = endOf(old);
  if (text[end - 1] === "\n") end -= 1;
  return splice(text, shown.startsWith("\n") ? colon : Math.max(colon, lineStart(text, startOf(old)) > colon ? colon : startOf(old)), end, !shown.startsWith("\n") && lineStart(text, startOf(old)) > colon ? ` ${shown}` : shown);
}

function insert(text: string, node: Collection, path: Path, value: unknown, document: Document): string | null {
  const key = String(path.at(-1));
  const last = node.items.at(-1) as Pair<Node, Node | null> | Node | undefined;
  if (last === undefined) return path.length < 2 ? null : spliceSet(text, document, path.slice(0, -1), isSeq(node) ? [value] : { [key]: value });
  if (node.flow === true) {
    if (!node.range) return null;
    const [, end] = span(last);
    return splice(text, end, end, `, ${isSeq(node) ? inline(value) : pairLine(key, value, 0, true)}`);
  }
  const first = node.items[0] as Pair<Node, Node | null> | Node;
  const [begin] = span(first);
  const indent = isSeq(node) ? (/^\s*/.exec(text.slice(lineStart(text, begin)))?.[0].length ?? 0) : columnOf(text, begin);
  const line = isSeq(node) ? itemLine(value, indent, false) : pairLine(key, value, indent, false);
  const at = tail(text, span(last)[1]);
  return splice(text, at, at, `\n${" ".repeat(indent)}${line}`);
}

/** Appends to a list. */
export function appendIn(text: string, path: Path, value: unknown): string {
  const list = parseDocument(text).getIn(path, true);
  const length = isSeq(list) ? list.items.length : 0;
  if (length === 0) return setIn(text, path, [value]);
  return setIn(text, [...path, length], value);
}

/** Removes what stands at a path. Comments above it stay. */
export function deleteIn(text: string, path: Path): string {
  const document = parseDocument(text);
  if (document.errors.length > 0 || !document.hasIn(path)) return text;
  const found = locate(document, path);
  if (found !== null && found.node.items.length === 1 && path.length > 1) {
    if (path.length === 2 && path[0] === "nodes") return setIn(text, ["nodes"], {});
    return deleteIn(text, path.slice(0, -1));
  }
  return checked(text, found === null ? null : spliceDelete(text, found), (meant) => void meant.deleteIn(path));
}

function spliceDelete(text: string, { node, item, index }: Found): string | null {
  if (item === undefined) return null;
  const [from, to] = span(item);
  if (node.flow === true) {
    if (index > 0) return splice(text, span(node.items[index - 1] as Node)[1], to, "");
    return splice(text, from, span(node.items[1] as Node)[0], "");
  }
  const [begin, end] = [lineStart(text, from), tail(text, to)];
  const before = text.slice(begin, from);
  if (/^\s*(- *)?$/.test(before) === false) return null;
  if (isMap(node) && before.includes("-")) return splice(text, from, span(node.items[1] as unknown as Node)[0], ""); // the first key of a list's item: the next takes its place
  return splice(text, begin, Math.min(text.length, end + 1), "");
}

/** Gives a key another name; what it holds stays where it is. */
export function renameKey(text: string, path: Path, name: string): string {
  const document = parseDocument(text);
  const found = document.errors.length > 0 ? null : locate(document, path);
  if (found === null || !isPair(found.item)) return text;
  const key = found.item.key as Node;
  return splice(text, startOf(key), endOf(key), inline(name));
}
