//! Every fault of the mock EL, through the sidecar: the CL gets the honest result, or an error with its
//! own id that says so, and never a wrong result or none.

mod conversation;
#[path = "../support/mod.rs"]
mod support;
mod table;
