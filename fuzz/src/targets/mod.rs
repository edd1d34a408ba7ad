//! One function per target: any bytes in, a panic is a finding.

mod calls;
mod envelope;
mod json;
mod json_to_ssz;
mod jwt;
mod opinions;
mod problem;
mod rest_answers;
mod ssz_to_json;

pub use envelope::envelope;
pub use json_to_ssz::json_to_ssz;
pub use jwt::jwt;
pub use problem::problem;
pub use rest_answers::rest_answers;
pub use ssz_to_json::ssz_to_json;
