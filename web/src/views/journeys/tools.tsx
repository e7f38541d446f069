// The line above the map: people or numbers, and over which time percentages are counted.
const SPANS: [days: number, name: string][] = [[1, "Last 24 hours"], [7, "Last 7 days"], [30, "Last 30 days"], [365, "Last year"], [0, "All time"]];

export function Tools({ view, days, onView, onDays }: { view: "people" | "numbers"; days: number; onView: (view: "people" | "numbers") => void; onDays: (days: number) => void }) {
  return (
    <div className="jr-tools">
      <div className="seg" role="group" aria-label="Show">
        <button type="button" aria-pressed={view === "people"} onClick={() => onView("people")}>People</button>
        <button type="button" aria-pressed={view === "numbers"} onClick={() => onView("numbers")}>Numbers</button>
      </div>
      <select className="select input-sm jr-span" aria-label="Counted over" value={days} onChange={(event) => onDays(Number(event.target.value))}>{SPANS.map(([span, name]) => <option key={span} value={span}>{name}</option>)}</select>
      <span className="c2 t1 jr-about">{view === "people" ? "Percentages: of those who entered in this time, how many moved on" : "Numbers: entries in this time"}</span>
    </div>
  );
}
