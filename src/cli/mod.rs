//! What the command line is made of: real servers as child processes, and a client for their administrator.

pub mod bind;
pub mod connect;
pub mod dev;
pub mod doctor;
pub mod drain;
pub mod explain;
pub mod init;
pub mod kcp_admin;
pub mod kcp_server;
pub mod leash;
pub mod main;
pub mod manifests;
pub mod manuals;
pub mod run;
pub mod servers;
pub mod uninstall;
pub mod virtual_workspaces;

use std::io::{self, Write as _};

/// Prints to standard output what was asked for. A reader that has seen enough and left, such as `less` or `head`, is no error.
fn print_out(text: &str) -> io::Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
