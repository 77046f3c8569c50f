//! The kinds of the wire API and their values; nothing here talks to a server.

pub mod names;
pub mod quantity;
