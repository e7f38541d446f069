import { expect, it } from "vitest";
import { drawingOf, placesOf } from "@/model/drawing";

it("places are read from a list and by name", () => {
  const places = { a: { x: 1, y: 2 } };
  expect(placesOf({ nodes: [{ id: "a", position: { x: 1, y: 2 } }, { id: "b" }] })).toEqual(places);
  expect(placesOf({ nodes: { a: { position: { x: 1, y: 2 } } } })).toEqual(places);
  expect(placesOf(null)).toEqual({});
});

it("a drawing keeps its form, its colours and whatever else is in it", () => {
  const named = { sections: [1], nodes: { a: { type: "UX", position: { x: 0, y: 0 } } } };
  expect(drawingOf(named, { a: { x: 5, y: 6 } }, [], "t")).toEqual({ sections: [1], nodes: { a: { type: "UX", position: { x: 5, y: 6 } } }, text: "t" });
  const listed = { nodes: [{ id: "a", data: { color: "red" } }] };
  expect(drawingOf(listed, { a: { x: 5, y: 6 } }, [], "t")).toEqual({ nodes: [{ id: "a", data: { color: "red" }, position: { x: 5, y: 6 } }], text: "t" });
});
