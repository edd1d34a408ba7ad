//! The bytes of the REST-SSZ Engine API: one schema table of every container per fork, and the
//! walkers JSON → SSZ and SSZ → JSON over it. No I/O; knows nothing of methods or HTTP.
//!
//! ```text
//! container   what a row of the table can say          error    why a value did not pass
//! schema      the table, one row per field             json     a cursor over JSON text
//! parse       JSON text  → tree of spans  ┐            access   one field of a body, unparsed
//! encode      tree       → SSZ            ┘ to_ssz
//! decode      SSZ        → regions, check ┐
//! print       regions    → JSON text      ┘ to_json
//! ```
//!
//! Bulk data has no intermediate form: hexadecimal digits are decoded from the request text
//! straight into the outgoing SSZ, and SSZ bytes are encoded straight into the outgoing JSON, each
//! output allocated once.
//!
//! Both directions refuse rather than guess. A value that cannot be carried is no error of the
//! CL's ([`NotTranscodable`]: the call then goes to the EL as it came); a body that does not decode
//! is a bad answer of the EL's ([`Malformed`]).

mod access;
mod container;
mod decode;
mod encode;
mod error;
mod fork;
mod json;
mod parse;
mod print;
pub mod schema;

pub use access::{elements, field};
pub use container::Container;
pub use decode::check;
pub use encode::to_ssz;
pub use error::{Defect, Malformed, NotTranscodable, Reason};
pub use fork::Fork;
pub use json::{is_null, json_array, json_data, json_first_member, json_member, json_u64};
pub use parse::Source;
pub use print::{member_to_json, to_json};
