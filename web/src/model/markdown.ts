// Markdown of authors and people as a small tree. Nothing in it is HTML: a screen makes elements out of the tree, and
// text stays text. Links lead to the web or to a mail address; any other link is shown as its words.

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "strong" | "em"; readonly parts: readonly Inline[] }
  | { readonly kind: "link"; readonly href: string; readonly parts: readonly Inline[] }
  | { readonly kind: "break" };

export type Block =
  | { readonly kind: "paragraph"; readonly parts: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: number; readonly parts: readonly Inline[] }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "quote"; readonly blocks: readonly Block[] }
  | { readonly kind: "list"; readonly ordered: boolean; readonly start: number; readonly items: readonly (readonly Block[])[] }
  | { readonly kind: "rule" };

/** A longer text is cut, so that a page stays one. */
export const LONGEST = 50_000;
const DEPTH_MAX = 8;
const ITEM = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])( +|$)/;
const SAFE_LINK = /^(https?:\/\/|mailto:)[^\s\p{Cc}]+$/iu;

export const isSafeLink = (href: string): boolean => SAFE_LINK.test(href);

/** The blocks of a text. */
export const markdown = (text: string): Block[] => blocks(text.slice(0, LONGEST).replaceAll("\r\n", "\n").split("\n"), 0);

function blocks(lines: readonly string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const [block, next] = depth < DEPTH_MAX ? blockAt(lines, at, depth) : paragraph(lines, at);
    found.push(block);
    at = next;
  }
  return found;
}

function blockAt(lines: readonly string[], at: number, depth: number): [Block, number] {
  const line = lines[at]!;
  const fence = /^ {0,3}(```+|~~~+)/.exec(line)?.[1];
  if (fence !== undefined) return fenced(lines, at, fence);
  const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/.exec(line);
  if (heading !== null) return [{ kind: "heading", level: heading[1]!.length, parts: inline(heading[2]!) }, at + 1];
  if (isRule(line)) return [{ kind: "rule" }, at + 1];
  if (/^ {0,3}>/.test(line)) return quoted(lines, at, depth);
  if (ITEM.test(line)) return list(lines, at, depth);
  return paragraph(lines, at);
}

const isRule = (line: string) => /^ {0,3}([-*_])( *\1){2,} *$/.test(line);

function fenced(lines: readonly string[], at: number, fence: string): [Block, number] {
  let end = at + 1;
  while (end < lines.length && !lines[end]!.trimStart().startsWith(fence)) end += 1;
  return [{ kind: "code", text: lines.slice(at + 1, end).join("\n") }, Math.min(end + 1, lines.length)];
}

function quoted(lines: readonly string[], at: number, depth: number): [Block, number] {
  let end = at;
  while (end < lines.length && /^ {0,3}>/.test(lines[end]!)) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(/^ {0,3}> ?/, ""));
  return [{ kind: "quote", blocks: blocks(inner, depth + 1) }, end];
}

function list(lines: readonly string[], at: number, depth: number): [Block, number] {
  const first = ITEM.exec(lines[at]!)!;
  const ordered = first[3] !== undefined;
  const items: Block[][] = [];
  let end = at;
  while (end < lines.length) {
    const mark = ITEM.exec(lines[end]!);
    if (mark === null || (mark[3] !== undefined) !== ordered || isRule(lines[end]!)) break;
    const indent = mark[0].length;
    const inner = [lines[end]!.slice(indent)];
    end += 1;
    while (end < lines.length && belongs(lines, end, indent)) {
      inner.push(lines[end]!.slice(Math.min(indent, lines[end]!.search(/\S|$/))));
      end += 1;
    }
    items.push(blocks(inner, depth + 1));
    const next = lines.findIndex((line, place) => place >= end && line.trim() !== "");
    if (next > end && ITEM.test(lines[next]!) && next - end === 1) end = next;
  }
  return [{ kind: "list", ordered, start: Number(first[3] ?? 1), items }, end];
}

/** Whether a line goes on with a list's item: it is set in, or it is the rest of a paragraph. */
function belongs(lines: readonly string[], at: number, indent: number): boolean {
  const line = lines[at]!;
  if (line.trim() === "") return at + 1 < lines.length && lines[at + 1]!.search(/\S|$/) >= indent && lines[at + 1]!.trim() !== "";
  if (line.search(/\S/) >= Math.min(indent, 2)) return true;
  return lines[at - 1]!.trim() !== "" && !starts(line);
}

/** Whether a line begins a block of its own and ends a paragraph before it. */
const starts = (line: string) => ITEM.test(line) || /^ {0,3}(#{1,6}\s|>|```|~~~)/.test(line) || isRule(line);

function paragraph(lines: readonly string[], at: number): [Block, number] {
  let end = at + 1;
  while (end < lines.length && lines[end]!.trim() !== "" && !starts(lines[end]!)) end += 1;
  return [{ kind: "paragraph", parts: inline(lines.slice(at, end).map((line) => line.trimStart()).join("\n")) }, end];
}

const INLINE =
  /\\([!-/:-@[-`{-~])|(`+)([^`](?:[\s\S]*?[^`])?)\2(?!`)|!?\[((?:[^[\]\\]|\\.)*)\]\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+"[^"]*")?\s*\)|<((?:https?:\/\/|mailto:)[^\s<>]+)>|(\*\*|__)(?=\S)([\s\S]*?\S)\7(?![*_])|([*_])(?=\S)([\s\S]*?\S)\9|( {2,}|\\)\n|(\bhttps?:\/\/[^\s<>()"']*[^\s<>()"'.,;:!?])/g;

/** The parts of a line or paragraph. */
export function inline(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  const say = (words: string) => {
    const last = found.at(-1);
    if (words === "") return;
    if (last?.kind === "text") found[found.length - 1] = { kind: "text", text: last.text + words };
    else found.push({ kind: "text", text: words });
  };
  if (depth > DEPTH_MAX) return [{ kind: "text", text }];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, escaped, , code, words, href, auto, , strong, mark, em, , bare] = match;
    if (mark === "_" && /[\p{L}\p{N}]/u.test(text[match.index - 1] ?? " ")) continue; // snake_case is no emphasis
    if (match.index < at) continue;
    say(text.slice(at, match.index));
    at = match.index + whole.length;
    if (escaped !== undefined) say(escaped);
    else if (code !== undefined) found.push({ kind: "code", text: code.replaceAll("\n", " ").trim() });
    else if (words !== undefined) {
      const parts = inline(words, depth + 1);
      if (isSafeLink(href ?? "") && !whole.startsWith("!")) found.push({ kind: "link", href: href!, parts });
      else found.push(...parts);
    } else if (auto !== undefined || bare !== undefined) found.push({ kind: "link", href: (auto ?? bare)!, parts: [{ kind: "text", text: (auto ?? bare)!.replace(/^mailto:/, "") }] });
    else if (strong !== undefined) found.push({ kind: "strong", parts: inline(strong, depth + 1) });
    else if (em !== undefined) found.push({ kind: "em", parts: inline(em, depth + 1) });
    else found.push({ kind: "break" });
  }
  say(text.slice(at));
  return found;
}
