//! `kcm manifests`: the manifests as files or as one stream.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use super::print_out;
use crate::api::manifest::files;

/// Print the manifests of this version, or write them to a folder; asks no server
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "Examples:
  kcm manifests | less
  kcm manifests --out deploy      deploy/apiexports, deploy/config/crds, deploy/config/rbac, deploy/config/samples")]
pub struct ManifestsArgs {
    /// Folder to write to; files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl ManifestsArgs {
    /// Prints every manifest, each below its path as a comment, or writes the files.
    #[allow(clippy::unused_async, reason = "every verb of the command line runs the same way")]
    pub async fn run(self) -> anyhow::Result<()> {
        let Some(out) = self.out else {
            let texts: Vec<String> = files::all().iter().map(|(path, text)| format!("---\n# {path}\n{text}")).collect();
            return print_out(&texts.concat()).context("cannot print the manifests");
        };
        for (path, text) in files::all() {
            let path = out.join(path);
            let folder = path.parent().unwrap_or(&out);
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{}", path.display());
        }
        Ok(())
    }
}
