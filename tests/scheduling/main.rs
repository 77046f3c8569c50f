//! The scheduling rules of the wire API: as case files, each with its why, and as properties that hold for any input.

#![allow(clippy::unwrap_used)]

mod cases;
mod explanation;
mod format;
mod properties;
mod world;
