// Journeys on a phone: sections one below the other, each with its nodes, and who is there.
import { percentText, stayText, type Standing } from "@/model/journeys";
import { Icon } from "@/ui/icon";
import { iconOf } from "@/views/run/graph/node";
import { useJourneys } from "./context";
import { Cluster, Dot } from "./dots";

const NOWHERE = [0, 0] as const;

export function PhoneList() {
  const { drawn, counts, conversion, standings } = useJourneys();
  const inSections = new Set(drawn.map.sectionOf.keys());
  const loose = drawn.graph.nodes.filter((node) => !inSections.has(node.ref)).map((node) => node.ref);
  const at = (kind: string, name: string) => standings.filter((one) => one.place.kind === kind && one.place.name === name);
  const onWay = standings.filter((one) => one.place.kind === "edge");
  return (
    <div className="jr-phone scroll">
      {loose.length > 0 && <ul className="card">{loose.map((ref) => <Node key={ref} name={ref} here={at("node", ref)} />)}</ul>}
      {drawn.map.sections.map((section) => {
        const flow = conversion?.sections.find((one) => one.section === section.id);
        return (
          <section key={section.id} aria-label={section.name}>
            <header><h2>{section.name}</h2><span className="jr-here">{(counts.get(section.id) ?? 0).toLocaleString()} here</span>{flow?.spent_p50_ms != null && <span className="jr-stay push">stay {stayText(flow.spent_p50_ms)}</span>}</header>
            <ul className="card">
              {[...section.nodes].map((ref) => <Node key={ref} name={ref} here={at("node", ref)} />)}
              {(at("section", section.id).length > 0 || section.nodes.length === 0) && <li><span className="grow c2">in {section.name} itself</span><Marks here={at("section", section.id)} /></li>}
            </ul>
          </section>
        );
      })}
      {onWay.length > 0 && <section aria-label="On the way"><header><h2>On the way</h2></header><ul className="card">{onWay.map((one) => <li key={one.place.name}><span className="grow mono clip">{one.place.name}</span><Marks here={[one]} /></li>)}</ul></section>}
    </div>
  );
}

function Node({ name, here }: { name: string; here: readonly Standing[] }) {
  const { drawn, shares } = useJourneys();
  const node = drawn.graph.nodes.find((one) => one.ref === name);
  const on = drawn.graph.transitions.filter((edge) => edge.source === name).flatMap((edge) => {
    const percent = shares.get(edge.id)?.percent;
    return percent == null || percent === 0 ? [] : [`${percentText(percent)} to ${edge.target}`];
  });
  return (
    <li>
      <span className="jr-tile"><Icon name={iconOf(node?.kind ?? "", node?.words ?? "")} /></span>
      <span className="jr-node-text grow"><b className="clip">{name}</b><span className="clip">{on.join(" · ") || node?.words.replace(/^human /, "")}</span></span>
      <Marks here={here} />
    </li>
  );
}

const Marks = ({ here }: { here: readonly Standing[] }) => (
  <span className="jr-marks">{here.map((one) => (one.people === null ? <Cluster key={one.place.name} standing={one} at={NOWHERE} /> : one.people.map((entity) => <Dot key={`${entity.type}/${entity.id}`} entity={entity} at={NOWHERE} />)))}</span>
);
