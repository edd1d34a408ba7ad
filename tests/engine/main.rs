//! The state machines of the translation, driven without a socket: what they ask of the EL, and
//! what they make of what it says. Answers are built with alloy's types.

mod blobs;
mod bodies;
mod bogota;
mod calls;
mod errors;
mod real_answers;
mod support;
