//! `evoxo completions SHELL` and `evoxo man DIRECTORY`: generated from the same description as the help.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap_complete::{Shell, generate};

use crate::say::{program, stdout, tell};

/// The shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evoxo completions bash > ~/.local/share/bash-completion/completions/evoxo
  evoxo completions zsh > \"${fpath[1]}/_evoxo\"
  evoxo completions fish > ~/.config/fish/completions/evoxo.fish")]
pub(crate) struct Completions {
    shell: Shell,
}

/// The directory to write into.
#[derive(clap::Args)]
#[command(after_help = "Example:
  evoxo man ~/.local/share/man/man1      and then: man evoxo, man evoxo-run")]
pub(crate) struct Man {
    /// A directory, which is created if it does not exist
    directory: PathBuf,
}

pub(crate) fn completions(arguments: &Completions, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, program(), &mut script);
    stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(arguments: &Man, command: clap::Command) -> anyhow::Result<ExitCode> {
    let directory = &arguments.directory;
    let shown = directory.display();
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {shown}"))?;
    let pages = clap_mangen::generate_to(command, directory);
    pages.with_context(|| format!("cannot write manual pages into {shown}"))?;
    tell(format_args!("the manual pages are in {shown}"));
    Ok(ExitCode::SUCCESS)
}
