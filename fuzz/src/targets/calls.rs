//! Calls for an EL to answer: one of each method, as a CL makes them.

use bytes::Bytes;
use engine_ssz_proxy::engine::{
    Call, Context, Exchange, Horizon, Limits, Memory, Method, Offer, Said, Step,
};
use engine_ssz_proxy::wire::Fork;
use http::Response;
use http::header::CONTENT_TYPE;

/// What the blocks and the heads of the calls are called.
pub const BLOCK: [u8; 32] = [0x11; 32];

/// How many blobs and bodies are asked for.
pub const ASKED: usize = 3;

/// The forks that the EL offers.
const FORKS: [Fork; 7] = Fork::ALL;

const HASH: &str = "\"0x1111111111111111111111111111111111111111111111111111111111111111\"";

/// The EL of the calls: it takes less at once than is asked for.
fn offer() -> Offer {
    let limits = Limits { payload_max_bytes: usize::MAX, bodies_max: 2, blobs_max: 2 };
    Offer::within(Horizon::Bogota, FORKS.map(Fork::name), limits)
}

/// The raw text of a call's `params`. Timestamps fit all forks, as no schedule is known.
pub fn params(method: Method) -> String {
    let newest = method.forks().last().copied().unwrap_or(Fork::Paris);
    let hashes = [HASH; ASKED].join(",");
    match method {
        Method::NewPayload(_) => {
            let mut params = vec![payload(newest)];
            if newest >= Fork::Cancun {
                params.extend(["[]".to_owned(), HASH.to_owned()]);
            }
            if newest >= Fork::Prague {
                params.push("[]".to_owned());
            }
            if newest >= Fork::Bogota {
                params.push("[]".to_owned());
            }
            format!("[{}]", params.join(","))
        }
        Method::ForkchoiceUpdated(_) => {
            let state = format!(
                r#"{{"headBlockHash":{HASH},"safeBlockHash":{HASH},"finalizedBlockHash":{HASH}}}"#
            );
            format!("[{state},{}]", attributes(newest))
        }
        Method::GetPayload(_) => r#"["0x0000000000000001"]"#.to_owned(),
        Method::BodiesByHash(_) => format!("[[{hashes}]]"),
        Method::BodiesByRange(_) => format!(r#"["0x1","{ASKED:#x}"]"#),
        Method::Blobs(version) if version.name() == "v4" => {
            format!(r#"[[{hashes}],"0x03000000000000000000000000000000"]"#)
        }
        Method::Blobs(_) => format!("[[{hashes}]]"),
        Method::ClientVersion => {
            r#"[{"code":"LH","name":"Lighthouse","version":"v8","commit":"0x00000000"}]"#.to_owned()
        }
        Method::InclusionList => "[]".to_owned(),
        Method::ExchangeCapabilities => r#"[["engine_getBlobsV2"]]"#.to_owned(),
    }
}

fn payload(fork: Fork) -> String {
    let address = format!("\"0x{}\"", "22".repeat(20));
    let bloom = format!("\"0x{}\"", "00".repeat(256));
    let mut members = vec![
        format!(r#""parentHash":{HASH},"feeRecipient":{address},"stateRoot":{HASH}"#),
        format!(r#""receiptsRoot":{HASH},"logsBloom":{bloom},"prevRandao":{HASH}"#),
        r#""blockNumber":"0x1","gasLimit":"0x2","gasUsed":"0x0","timestamp":"0x64""#.to_owned(),
        format!(r#""extraData":"0x","baseFeePerGas":"0x7","blockHash":{HASH},"transactions":[]"#),
    ];
    if fork >= Fork::Shanghai {
        members.push(r#""withdrawals":[]"#.to_owned());
    }
    if fork >= Fork::Cancun {
        members.push(r#""blobGasUsed":"0x0","excessBlobGas":"0x0""#.to_owned());
    }
    if fork >= Fork::Amsterdam {
        members.push(r#""blockAccessList":"0x","slotNumber":"0x1""#.to_owned());
    }
    format!("{{{}}}", members.join(","))
}

fn attributes(fork: Fork) -> String {
    let address = format!("\"0x{}\"", "22".repeat(20));
    let mut members = vec![format!(
        r#""timestamp":"0x64","prevRandao":{HASH},"suggestedFeeRecipient":{address}"#
    )];
    if fork >= Fork::Shanghai {
        members.push(r#""withdrawals":[]"#.to_owned());
    }
    if fork >= Fork::Cancun {
        members.push(format!(r#""parentBeaconBlockRoot":{HASH}"#));
    }
    if fork >= Fork::Amsterdam {
        members.push(r#""slotNumber":"0x1","targetGasLimit":"0x2""#.to_owned());
    }
    if fork >= Fork::Bogota {
        members.push(r#""inclusionListTransactions":[]"#.to_owned());
    }
    format!("{{{}}}", members.join(","))
}

/// An EL's answer over REST.
pub fn answer(status: u16, content_type: &[u8], body: Bytes) -> Option<Response<Bytes>> {
    let mut answer = Response::builder().status(status);
    if !content_type.is_empty() {
        answer = answer.header(CONTENT_TYPE, content_type);
    }
    answer.body(body).ok()
}

/// A call under way.
pub struct Conversation {
    pub method: Method,
    pub memory: Memory,
    offer: Offer,
    call: Call,
    /// What to do next.
    pub step: Step,
    /// The fork header of the exchange under way, or of the last one.
    pub fork: Option<Fork>,
    exchanges: usize,
}

impl Conversation {
    /// Begins the call.
    pub fn begin(method: Method) -> Self {
        let memory = Memory::new(None).within(Horizon::Bogota);
        let offer = offer();
        let context = Context { memory: &memory, offer: Some(&offer) };
        let (call, step) = Call::begin(method, Some(params(method).as_bytes()), context);
        let mut begun = Self { method, memory, offer, call, step, fork: None, exchanges: 0 };
        begun.note();
        begun
    }

    /// Whether the EL is being asked over REST.
    pub const fn asks(&self) -> bool {
        matches!(self.step, Step::Send(_))
    }

    /// Goes on with that answer.
    pub fn resume(&mut self, said: Said) {
        let context = Context { memory: &self.memory, offer: Some(&self.offer) };
        self.step = self.call.resume(said, context);
        self.note();
    }

    fn note(&mut self) {
        let Step::Send(exchange) = &self.step else { return };
        let Exchange { request, .. } = &**exchange;
        self.exchanges += 1;
        let header = request.headers().get("eth-execution-version");
        self.fork = header.and_then(|name| Fork::from_name(name.to_str().ok()?));
        // One for each entry under each fork, and one to test the era filter.
        assert!(self.exchanges <= ASKED * FORKS.len() + 1, "the EL is asked for ever");
    }
}
