// A worker in JavaScript, for a Worker node of a canvas: it takes a job at once, works, and answers later.
//
//   WEBHOOK_SECRET=whsec_… PORT=4801 node script.mjs
//
// It needs nothing but Node. The message is {runId, nodeId, config, input, callbackUrl} (`payload: stitch`), signed after
// Standard Webhooks. A message that comes twice has the same `webhook-id`, and is worked on once.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const KEY = Buffer.from((process.env.WEBHOOK_SECRET ?? "").replace(/^whsec_/, ""), "base64");
const taken = new Set();

function isSigned(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": given = "" } = headers;
  if (!(Math.abs(Date.now() / 1000 - Number(at)) < 300)) return false;
  const expected = createHmac("sha256", KEY).update(`${id}.${at}.${body}`).digest();
  return given.split(" ").some((one) => {
    const signature = Buffer.from(one.replace(/^v1,/, ""), "base64");
    return signature.length === expected.length && timingSafeEqual(signature, expected);
  });
}

async function work({ config, input, callbackUrl }) {
  const lines = [`A ${config.tone} film about ${input.topic}.`, "The end."];
  const answer = input.topic
    ? { status: "completed", output: { lines } }
    : { status: "failed", error: { kind: "NO_TOPIC", message: "a film needs a topic" } };
  for (let pause = 500; ; pause = Math.min(pause * 2, 60_000)) {
    const reply = await fetch(callbackUrl, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(answer),
    }).catch(() => null);
    if (reply !== null && reply.status < 500) return; // taken, or refused for good: 404, 409, 410, 422
    await new Promise((done) => setTimeout(done, pause));
  }
}

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  if (!isSigned(request.headers, body)) {
    response.writeHead(401).end();
    return;
  }
  response.writeHead(202).end(); // taken: the answer comes later
  if (taken.has(request.headers["webhook-id"])) return;
  taken.add(request.headers["webhook-id"]);
  await work(JSON.parse(body));
});
server.listen(Number(process.env.PORT ?? 4801), "127.0.0.1", () => console.log(server.address().port));
