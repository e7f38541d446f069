// A worker in JavaScript: claims work of a queue over HTTP, does it, and reports. Node 18 or newer, no package.
//
//     TREADLE_SERVER=http://127.0.0.1:8787 TREADLE_KEY=tdl_… node worker.mjs texts

const { TREADLE_SERVER: server, TREADLE_KEY: key } = process.env;
const queue = process.argv[2];
const leaseMs = 15_000;
const work = {
  // by the name of the work
  upper: (input, config) => ({ text: input.text.toUpperCase() + config.end }),
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The answer; null if the work is over or another worker has it (410). Repeats while the service is away. */
async function post(path, body) {
  for (;;) {
    let reply;
    try {
      reply = await fetch(`${server}/api/v1/tasks/${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
        body: JSON.stringify(body),
      });
    } catch {
      await pause(1_000); // the service is being restarted: a result that is sent twice counts once
      continue;
    }
    if (reply.ok) return reply.json();
    if (reply.status === 410) return null;
    if (![429, 500, 502, 503, 504].includes(reply.status)) throw new Error(await reply.text());
    await pause(1_000);
  }
}

/** Does one task and reports its result. */
async function perform({ task, input, config }) {
  const alive = setInterval(() => post(`${task}/heartbeat`, { lease_ms: leaseMs }).catch(() => {}), leaseMs / 3);
  try {
    const output = await work[config.name](input, config.config);
    await post(`${task}/complete`, { output });
  } catch (problem) {
    await post(`${task}/fail`, { error: { kind: problem.name, message: problem.message } });
  } finally {
    clearInterval(alive);
  }
}

for (;;) {
  const wanted = { queues: [queue], kinds: ["work"], worker: `node-${process.pid}`, lease_ms: leaseMs, wait_ms: 30_000 };
  const found = await post("claim", wanted);
  for (const task of found?.tasks ?? []) await perform(task);
}
