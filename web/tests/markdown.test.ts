import { describe, expect, it } from "vitest";
import { inline, isSafeLink, markdown, type Block, type Inline } from "@/model/markdown";

const text = (words: string): Inline => ({ kind: "text", text: words });
const paragraph = (...parts: Inline[]): Block => ({ kind: "paragraph", parts });

describe("blocks", () => {
  it("parts paragraphs by empty lines and joins the lines of one", () => {
    expect(markdown("one\ntwo\n\nthree")).toEqual([paragraph(text("one\ntwo")), paragraph(text("three"))]);
  });

  it("reads lists, also inside of lists and right after a paragraph", () => {
    expect(markdown("Mind:\n- a\n  - b\n- c\n\n2. x\n3. y")).toEqual([
      paragraph(text("Mind:")),
      {
        kind: "list",
        ordered: false,
        start: 1,
        items: [
          [paragraph(text("a")), { kind: "list", ordered: false, start: 1, items: [[paragraph(text("b"))]] }],
          [paragraph(text("c"))],
        ],
      },
      { kind: "list", ordered: true, start: 2, items: [[paragraph(text("x"))], [paragraph(text("y"))]] },
    ]);
  });

  it("reads headings, quotes, rules and code that is left as it is", () => {
    expect(markdown("# Title #\n> said\n\n---\n```js\n<b>*no*</b>\n```")).toEqual([
      { kind: "heading", level: 1, parts: [text("Title")] },
      { kind: "quote", blocks: [paragraph(text("said"))] },
      { kind: "rule" },
      { kind: "code", text: "<b>*no*</b>" },
    ]);
  });

  it("ends also where a fence is never closed or everything is set in deeply", () => {
    expect(markdown("```\nopen")).toEqual([{ kind: "code", text: "open" }]);
    expect(markdown(">".repeat(60) + "deep")).toHaveLength(1);
    expect(markdown("- ".repeat(60) + "deep")).toHaveLength(1);
  });
});

describe("parts of a line", () => {
  it("reads emphasis, code and breaks", () => {
    expect(inline("a **b *c*** `d*e`  \nf")).toEqual([
      text("a "),
      { kind: "strong", parts: [text("b "), { kind: "em", parts: [text("c")] }] },
      text(" "),
      { kind: "code", text: "d*e" },
      { kind: "break" },
      text("f"),
    ]);
  });

  it("leaves stars in sums, names with underscores and escaped signs alone", () => {
    expect(inline("2 * 3 * 4, snake_case_name, \\*no\\*")).toEqual([text("2 * 3 * 4, snake_case_name, *no*")]);
  });

  it("links only to the web and to mail", () => {
    expect(inline("[a](https://x.org/p_(1)) <mailto:a@b.c>")).toEqual([
      { kind: "link", href: "https://x.org/p_(1)", parts: [text("a")] },
      text(" "),
      { kind: "link", href: "mailto:a@b.c", parts: [text("a@b.c")] },
    ]);
    for (const bad of ["javascript:alert(1)", "data:text/html,x", "//evil.org", "/runs", "vbscript:x", " javascript:x", "JaVaScRiPt:x"]) {
      expect(inline(`[a](${bad})`).every((part) => part.kind === "text"), bad).toBe(true);
      expect(isSafeLink(bad)).toBe(false);
    }
  });

  it("shows HTML and pictures as words", () => {
    expect(inline('<img src=x onerror="alert(1)">')).toEqual([text('<img src=x onerror="alert(1)">')]);
    expect(inline("![cat](https://x.org/cat.png)")).toEqual([text("cat")]);
  });
});

it("is done with hostile text at once", () => {
  for (const bad of ["*".repeat(20_000), "[".repeat(20_000), "`".repeat(20_000), "_a".repeat(10_000), "- ".repeat(20_000), "> ".repeat(20_000)]) {
    const before = performance.now();
    markdown(bad);
    expect(performance.now() - before, bad.slice(0, 4)).toBeLessThan(1_000);
  }
});
