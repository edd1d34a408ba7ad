//! The JSON-RPC 2.0 envelope: requests, batches, raw ids, error codes. Knows nothing of engine
//! methods or HTTP.
//!
//! A body is scanned once. What comes out are slices of it: the `params` of a block are never
//! copied and an id keeps the very text the caller wrote.
//!
//! ```
//! use bytes::Bytes;
//! use engine_ssz_proxy::jsonrpc::{Incoming, Reply, parse};
//!
//! let body = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1e3,"method":"eth_chainId"}"#);
//! let Ok(Incoming::Single(Ok(request))) = parse(&body) else { panic!() };
//! assert_eq!(request.method.as_str(), "eth_chainId");
//!
//! let reply = Reply::result(&request.id.unwrap(), Bytes::from_static(b"\"0x1\""));
//! assert_eq!(&reply.to_bytes()[..], br#"{"jsonrpc":"2.0","id":1e3,"result":"0x1"}"#);
//! ```

mod answer;
mod error;
mod reply;
mod request;
mod scan;
#[cfg(test)]
mod tests;
mod text;

pub use answer::{Answer, Verdict, answer_of};
pub use error::{Code, Error};
pub use reply::Reply;
pub use request::{
    Incoming, Invalid, MAX_BATCH_LENGTH, Method, RawId, Request, parse, parse_with_limit,
};
pub use scan::MAX_DEPTH;
