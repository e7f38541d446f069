// Markdown on the page: elements out of the model's tree, never markup out of a text.
import type { ReactNode } from "react";
import { markdown, type Block, type Inline } from "@/model/markdown";

export function Prose({ text }: { text: string }) {
  return <div className="prose">{markdown(text).map(block)}</div>;
}

function block(one: Block, at: number): ReactNode {
  switch (one.kind) {
    case "paragraph":
      return <p key={at}>{one.parts.map(part)}</p>;
    case "heading":
      return <p key={at} className="b" role="heading" aria-level={Math.min(one.level + 2, 6)}>{one.parts.map(part)}</p>;
    case "code":
      return <pre key={at} className="code scroll" tabIndex={0}>{one.text}</pre>;
    case "quote":
      return <blockquote key={at}>{one.blocks.map(block)}</blockquote>;
    case "list": {
      const items = one.items.map((item, place) => <li key={place}>{item.length === 1 && item[0]?.kind === "paragraph" ? item[0].parts.map(part) : item.map(block)}</li>);
      return one.ordered ? <ol key={at} start={one.start}>{items}</ol> : <ul key={at}>{items}</ul>;
    }
    case "rule":
      return <hr key={at} className="divider" />;
  }
}

function part(one: Inline, at: number): ReactNode {
  switch (one.kind) {
    case "text":
      return one.text;
    case "code":
      return <code key={at} className="mono">{one.text}</code>;
    case "strong":
      return <b key={at}>{one.parts.map(part)}</b>;
    case "em":
      return <em key={at}>{one.parts.map(part)}</em>;
    case "link":
      return <a key={at} className="link" href={one.href} target="_blank" rel="noopener noreferrer nofollow">{one.parts.map(part)}</a>;
    case "break":
      return <br key={at} />;
  }
}
