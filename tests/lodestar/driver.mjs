// Drives the unmodified Engine API client of Lodestar through six forks against URL, and prints what
// it saw. Times and seeds are fixed, so two runs against fresh ELs of one chain print the same.
//
// usage: node --import ./hooks.mjs driver.mjs URL JWT_SECRET_HEX GENESIS_HASH
//
// The EL's chain activates shanghai at 36 s, cancun 72, prague 108, osaka 144, amsterdam 180.
import crypto from "node:crypto";

const {ExecutionEngineHttp} = await import("./bn/lib/execution/engine/http.js");
const {JsonRpcHttpClient} = await import("./bn/lib/execution/engine/jsonRpcHttpClient.js");

const [url, secret, genesis] = process.argv.slice(2);
const quiet = () => {};
const logger = {
  error: console.error, warn: console.warn, info: quiet, verbose: quiet, debug: quiet, trace: quiet,
  child: () => logger,
};
const controller = new AbortController();
const options = {
  urls: [url], retries: 2, retryDelay: 500, timeout: 12000, version: "v1.44.0/e3d733b",
  commit: "e3d733b7b5107122ff90fc89021a9ab404198c39", jwtVersion: "Lodestar/v1.44.0",
};
const rpc = new JsonRpcHttpClient([url], {
  ...options, signal: controller.signal, jwtSecret: Buffer.from(secret, "hex"),
});
const engine = new ExecutionEngineHttp(
  rpc, {signal: controller.signal, logger, metrics: null}, options
);

const sha256 = (data) => crypto.createHash("sha256").update(data).digest();
const hex = (bytes) => "0x" + Buffer.from(bytes).toString("hex");
const check = (holds, what) => {
  if (!holds) {
    console.log("FAIL", what);
    process.exitCode = 1;
  }
};

const SLOT_SECONDS = 12;
const FORKS = ["bellatrix", "capella", "deneb", "electra", "fulu", "gloas"];
const hashes = [];
const blobHashes = [];
let head = genesis;
let finalized = "0x" + "00".repeat(32);
let withdrawalIndex = 0;

for (const [era, fork] of FORKS.entries()) {
  await engine.notifyForkchoiceUpdate(fork, head, head, finalized);
  for (let block = 0; block < (era === 0 ? 2 : 3); block++) {
    const n = hashes.length + 1;
    const root = sha256("beacon" + n);
    const attributes = {
      timestamp: n * SLOT_SECONDS,
      prevRandao: sha256("randao" + n),
      suggestedFeeRecipient: "0x8a04d14125d0fdcdc742f4a05c051de07232eda4",
    };
    if (era >= 1) {
      attributes.withdrawals = Array.from({length: n % 3}, () => ({
        index: withdrawalIndex++,
        validatorIndex: 7 + withdrawalIndex,
        address: sha256("withdrawal" + withdrawalIndex).subarray(0, 20),
        amount: BigInt(withdrawalIndex) * 1_000_000_007n,
      }));
    }
    if (era >= 2) attributes.parentBeaconBlockRoot = root;
    if (era >= 5) Object.assign(attributes, {slotNumber: 1000 + n, targetGasLimit: 60_000_000});

    const id = await engine.notifyForkchoiceUpdate(fork, head, head, finalized, attributes);
    check(typeof id === "string" && id.length === 18, `payload id ${id}`);
    const built = await engine.getPayload(fork, id);
    const versioned = (built.blobsBundle?.commitments ?? []).map((commitment) => {
      const hash = sha256(commitment);
      hash[0] = 1;
      return hash;
    });
    blobHashes.push(...versioned);
    const noRequests = {
      deposits: [], withdrawals: [], consolidations: [], builderDeposits: [], builderExits: [],
    };
    const status = await engine.notifyNewPayload(
      fork,
      built.executionPayload,
      era >= 2 ? versioned : undefined,
      era >= 2 ? root : undefined,
      era >= 3 ? (built.executionRequests ?? noRequests) : undefined
    );
    check(status.status === "VALID", `${fork} newPayload ${JSON.stringify(status)}`);
    head = hex(built.executionPayload.blockHash);
    hashes.push(head);
    if (n > 3) finalized = hashes[n - 3];
    await engine.notifyForkchoiceUpdate(fork, head, hashes[Math.max(0, n - 2)], finalized);
    console.log("block", fork, n, head);
  }
}

const show = async (what, call) => {
  try {
    console.log(what, JSON.stringify(await call()));
  } catch (error) {
    console.log(what, "->", error.constructor.name, error.message);
  }
};
const sizes = (blobs) => blobs?.map((blob) => blob && [blob.blob.length, blob.proofs?.length]);
const unknown = sha256("unknown");
await show("getBlobsV1", async () => sizes(await engine.getBlobs("electra", [blobHashes[0], unknown])));
await show("getBlobsV2", async () => sizes(await engine.getBlobs("fulu", blobHashes.slice(-1))));
await show("getBlobsV2 miss", async () => sizes(await engine.getBlobs("fulu", [unknown])));
await show("bodies by hash", async () => (await engine.getPayloadBodiesByHash("gloas", hashes)).length);
await show("bodies by range", async () => (await engine.getPayloadBodiesByRange("gloas", 1, 9)).length);
await show("unknown payload", () => engine.getPayload("fulu", "0x0000000000000001"));
await show("unknown head", () =>
  engine.notifyForkchoiceUpdate("gloas", hex(unknown), hex(unknown), "0x" + "00".repeat(32))
);
await show("wrong hash", () =>
  engine.notifyNewPayload("bellatrix", {
    parentHash: sha256("parent"), feeRecipient: Buffer.alloc(20), stateRoot: sha256("state"),
    receiptsRoot: sha256("receipts"), logsBloom: Buffer.alloc(256), prevRandao: sha256("randao"),
    blockNumber: 1, gasLimit: 30000000, gasUsed: 0, timestamp: 1, extraData: Buffer.alloc(0),
    baseFeePerGas: 7n, blockHash: sha256("hash"), transactions: [],
  })
);
console.log("client version", JSON.stringify(engine.clientVersion));
controller.abort();
process.exit(process.exitCode ?? 0);
