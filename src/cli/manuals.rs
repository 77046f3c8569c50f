//! `kcm completions` and `kcm man`: what shells and `man` know of the command line, made from the command line itself.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::main::Cli;
use super::print_out;

/// Print the completions of a shell
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kcm completions bash > ~/.local/share/bash-completion/completions/kcm
  kcm completions zsh > ~/.zfunc/_kcm
  kcm completions fish > ~/.config/fish/completions/kcm.fish")]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Write a man page for each verb to a folder
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  kcm man --out ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Folder to write to; it is made if needed, and files of the same names are replaced
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl CompletionsArgs {
    /// Prints the script.
    #[allow(clippy::unused_async, reason = "every verb of the command line runs the same way")]
    pub async fn run(self) -> anyhow::Result<()> {
        print_out(&String::from_utf8_lossy(&script(self.shell))).context("cannot print the completions")
    }
}

impl ManArgs {
    /// Writes `kcm.1` and a page for each visible verb.
    #[allow(clippy::unused_async, reason = "every verb of the command line runs the same way")]
    pub async fn run(self) -> anyhow::Result<()> {
        let attempt = || format!("cannot write man pages to {}", self.out.display());
        std::fs::create_dir_all(&self.out).with_context(attempt)?;
        clap_mangen::generate_to(Cli::command(), &self.out).with_context(attempt)
    }
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kcm", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    fn verbs() -> Vec<String> {
        let command = Cli::command();
        command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(|verb| verb.get_name().to_owned()).collect()
    }

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_shell_completes_every_verb() {
        assert!(verbs().len() >= 6, "{:?}", verbs());
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            assert!(verbs().iter().all(|verb| script.contains(verb.as_str())), "{shell}");
        }
    }

    #[test]
    fn every_verb_shows_examples_in_its_help() {
        for verb in Cli::command().get_subcommands().filter(|verb| verb.get_name() != "servers") {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:") && help.contains(&format!("kcm {}", verb.get_name())), "{}", verb.get_name());
        }
    }

    #[tokio::test]
    async fn every_verb_has_a_man_page() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("man1");
        ManArgs { out: out.clone() }.run().await.unwrap();
        let page = std::fs::read_to_string(out.join("kcm.1")).unwrap();
        assert!(page.contains(".TH"), "{page}");
        for verb in verbs() {
            assert!(out.join(format!("kcm-{verb}.1")).is_file(), "kcm-{verb}.1");
        }
    }
}
