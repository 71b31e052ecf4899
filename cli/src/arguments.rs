//! The command line, and the exit status: 0 for success, 1 for failure, 2 for wrong usage.

use std::{io::Write as _, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};
use evoxo_common::experiment::Registry;
use evoxo_process::{Build, Unwritten, begin, build, parsed, say_failure};
use evoxo_proto::long_version;

use crate::{
    say::{self, Usage, tell},
    verb,
};

/// This build, as its build script finds it.
const BUILD: Build =
    Build { version: env!("CARGO_PKG_VERSION"), commit: env!("EVOXO_COMMIT"), rustc: env!("EVOXO_RUSTC") };

const EXAMPLES: &str = "\
Examples:
  evoxo run experiments/invincible.toml           compute it on this machine
  evoxo run experiments/invincible.toml --set generations=40 --out out/longer
  evoxo new invincible > mine.toml                a commented file to start from
  evoxo odds CHAMPION.json                       exact odds, and a proof
  evoxo show CHAMPION.json                        its rules, moves or layers
  evoxo play CHAMPION.json                        beat it, if you can
  evoxo submit mine.toml --coordinator lab7:7600  the same on a cluster

Exit status: 0 for success, 1 for failure, 2 for wrong usage.";

#[derive(Parser)]
#[command(
    name = "evoxo",
    version = &*build().text().leak(),
    long_version = &*long_version(&build().text()).leak(),
    after_help = EXAMPLES,
    max_term_width = 110,
)]
/// Evolution of game players on many machines: the same result bit for bit, for any number of workers, through any crash.
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Compute an experiment on this machine, with its own coordinator and workers
    Run(verb::run::Arguments),
    /// Print a commented experiment file to start from
    New(verb::new::Arguments),
    /// Compute a 3x3 champion's exact odds, with a proof or with the games that it loses
    Odds(verb::odds::Arguments),
    /// Show a champion's contents: its rules as small boards, its moves, its layers
    Show(verb::show::Arguments),
    /// Compute the best possible table for a side and a penalty, exactly
    Optimum(verb::optimum::Arguments),
    /// Train a network to play as a 3x3 champion does, and compute its exact odds
    Imitate(verb::imitate::Arguments),
    /// Write a string's index table as a file: the index and variation of every board
    Index(verb::index::Arguments),
    /// Play against a champion in the terminal
    Play(verb::play::Arguments),
    /// Let other programs play against a champion, through the Universal Game Interface
    Engine(verb::engine::Arguments),
    /// Play matches between two players from every opening, with sides exchanged
    Match(verb::r#match::Arguments),
    /// Print a run's tables again from its result.json, and draw its plots
    Report(verb::report::Arguments),
    /// Show the page of runs that are stored in directories
    View(verb::view::Arguments),
    /// Write the reports of many runs as HTML pages, with a front page
    Gallery(verb::gallery::Arguments),
    /// Print the JSON Schema of a run's result.json
    Schema(verb::schema::Arguments),
    /// Show the best champion of each arm of a run
    Best(verb::best::Arguments),
    /// Print the digests of a run, of its replicas, and of their rounds
    Digest(verb::digest::Arguments),
    /// Compare two runs: settings, replicas, and the first round and number in which they differ
    Diff(verb::diff::Arguments),
    /// Compute a run that begins as another one and goes on with other settings
    Fork(verb::fork::Arguments),
    /// Find the first round that two builds compute differently
    Bisect(verb::bisect::Arguments),
    /// Show the ancestors of a champion, and where each of its genes was made
    Ancestry(verb::ancestry::Arguments),
    /// Print what a paper needs to know about a run: command, version, digest, cost, BibTeX
    Cite(verb::cite::Arguments),
    /// Write a certificate of a run, from which others compute a share of it again
    Certify(verb::certify::Arguments),
    /// Compute a share of a certified run again, drawn by a public text
    Challenge(verb::challenge::Arguments),
    /// Find out whether your program always gives the same answer
    Check(verb::check::Arguments),
    /// Compute a finished run's results again, or a share of them, and compare
    Verify(verb::verify::Arguments),
    /// Measure the kernels and their references, and print the behaviour signatures
    Bench(verb::bench::Arguments),
    /// Start a run on a coordinator, or extend it with more replicas
    Submit(verb::submit::Arguments),
    /// List a coordinator's runs
    Runs(verb::runs::Arguments),
    /// Follow a run until it ends
    Watch(verb::watch::Arguments),
    /// Stop handing out a run's tasks
    Pause(verb::order::Named),
    /// Continue a paused run, or try a failed run again
    Resume(verb::order::Named),
    /// Stop a run; submit it again to continue
    Cancel(verb::order::Cancel),
    /// Delete runs that ended long ago
    Prune(verb::prune::Arguments),
    /// Say which runs of a coordinator would go on under this build
    CheckUpgrade(verb::check_upgrade::Arguments),
    /// Save a run's results from a coordinator into a directory
    Fetch(verb::fetch::Arguments),
    /// List the tasks of a run that workers compute now
    Tasks(verb::tasks::Arguments),
    /// List a coordinator's workers
    Workers(verb::workers::Arguments),
    /// Try what usually fails when a cluster is set up, and say what to do about it
    Doctor(verb::doctor::Arguments),
    /// Let workers finish their tasks and leave
    Drain(verb::drain::Arguments),
    /// Show a coordinator's runs and workers, live in the terminal
    Top(verb::top::Arguments),
    /// Join a cluster: exchange a token for an access file
    Join(verb::access::Join),
    /// Create a token with which hosts or people join
    #[command(subcommand)]
    Token(verb::access::Tokens),
    /// List and revoke tokens, people and workers, and read the audit log
    #[command(subcommand)]
    Access(verb::access::Access),
    /// Print completions for a shell
    Completions(verb::completions::Completions),
    /// Write the manual pages into a directory
    Man(verb::completions::Man),
    /// Run a coordinator (as evoxo-coordinator)
    #[command(hide = true)]
    Coordinator(evoxo_coordinator::cli::Arguments),
    /// Compute a replica to a round (called by bisect)
    #[command(hide = true)]
    Probe(verb::probe::Arguments),
    /// Run a worker (as evoxo-worker)
    #[command(hide = true)]
    Worker(evoxo_worker::cli::Options),
}

/// Runs the program, from its arguments to its exit status, with the kinds of experiments in this registry.
#[must_use]
pub fn main(registry: &Registry) -> ExitCode {
    begin(BUILD);
    let error = match run(parsed::<Command>().verb, registry) {
        Ok(status) => match say::printed(say::stdout().flush()) {
            Ok(()) => return status,
            Err(error) => error,
        },
        Err(error) => error,
    };
    if Unwritten::is_left(&*error) {
        // As in other tools that print: `evoxo report DIR | head -1` is not a failure.
        return ExitCode::SUCCESS;
    }
    tell(format_args!("error: {error:#}"));
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Runs `evoxo-coordinator`, likewise.
#[must_use]
pub fn coordinator(registry: &Registry) -> ExitCode {
    begin(BUILD);
    match evoxo_coordinator::run(&parsed(), registry.clone()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say_failure(error);
            ExitCode::FAILURE
        }
    }
}

/// Runs `evoxo-worker`, likewise.
#[must_use]
pub fn worker(registry: &Registry) -> ExitCode {
    begin(BUILD);
    evoxo_worker::cli::main(registry)
}

fn run(verb: Verb, registry: &Registry) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Run(arguments) => verb::run::run(&arguments, registry),
        Verb::New(arguments) => verb::new::run(&arguments, registry),
        Verb::Odds(arguments) => verb::odds::run(&arguments, registry),
        Verb::Show(arguments) => verb::show::run(&arguments, registry),
        Verb::Optimum(arguments) => verb::optimum::run(&arguments),
        Verb::Imitate(arguments) => verb::imitate::run(&arguments, registry),
        Verb::Index(arguments) => verb::index::run(&arguments),
        Verb::Play(arguments) => verb::play::run(&arguments, registry),
        Verb::Engine(arguments) => verb::engine::run(&arguments, registry),
        Verb::Report(arguments) => verb::report::run(&arguments, registry),
        Verb::View(arguments) => verb::view::run(&arguments),
        Verb::Gallery(arguments) => verb::gallery::run(&arguments, registry),
        Verb::Schema(arguments) => verb::schema::run(&arguments),
        Verb::Best(arguments) => verb::best::run(&arguments, registry),
        Verb::Digest(arguments) => verb::digest::run(&arguments, registry),
        Verb::Diff(arguments) => verb::diff::run(&arguments, registry),
        Verb::Fork(arguments) => verb::fork::run(&arguments, registry),
        Verb::Bisect(arguments) => verb::bisect::run(&arguments, registry),
        Verb::Ancestry(arguments) => verb::ancestry::run(&arguments, registry),
        Verb::Cite(arguments) => verb::cite::run(&arguments, registry),
        Verb::Certify(arguments) => verb::certify::run(&arguments, registry),
        Verb::Challenge(arguments) => verb::challenge::run(&arguments, registry),
        Verb::Probe(arguments) => verb::probe::run(&arguments, registry),
        Verb::Check(arguments) => verb::check::run(&arguments, registry),
        Verb::Verify(arguments) => verb::verify::run(&arguments, registry),
        Verb::Match(arguments) => verb::r#match::run(&arguments, registry),
        Verb::Bench(arguments) => verb::bench::run(&arguments, registry),
        Verb::Submit(arguments) => verb::submit::run(&arguments, registry),
        Verb::Runs(arguments) => verb::runs::run(&arguments),
        Verb::Watch(arguments) => verb::watch::run(&arguments),
        Verb::Pause(arguments) => verb::order::pause(&arguments),
        Verb::Resume(arguments) => verb::order::resume(&arguments),
        Verb::Cancel(arguments) => verb::order::cancel(&arguments),
        Verb::Prune(arguments) => verb::prune::prune(&arguments),
        Verb::CheckUpgrade(arguments) => verb::check_upgrade::run(&arguments, registry),
        Verb::Fetch(arguments) => verb::fetch::run(&arguments, registry),
        Verb::Workers(arguments) => verb::workers::run(&arguments),
        Verb::Doctor(arguments) => verb::doctor::run(&arguments, registry),
        Verb::Tasks(arguments) => verb::tasks::run(&arguments),
        Verb::Drain(arguments) => verb::drain::run(&arguments),
        Verb::Top(arguments) => verb::top::run(&arguments),
        Verb::Completions(arguments) => verb::completions::completions(&arguments, Command::command()),
        Verb::Man(arguments) => verb::completions::man(&arguments, Command::command()),
        Verb::Join(arguments) => verb::access::join_cluster(&arguments),
        Verb::Token(verb) => verb::access::tokens(&verb),
        Verb::Access(verb) => verb::access::access(&verb),
        Verb::Coordinator(arguments) => {
            evoxo_coordinator::run(&arguments, registry.clone()).map(|()| ExitCode::SUCCESS)
        }
        Verb::Worker(options) => evoxo_worker::cli::work(&options, registry.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The help texts are snapshots, so every change of one is seen and read.
    #[test]
    fn every_help_text() {
        let mut command = Command::command().term_width(100);
        command.clone().debug_assert();
        command.build();
        insta::assert_snapshot!("help", command.render_long_help().to_string());
        for verb in command.get_subcommands_mut().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help") {
            let name = format!("help_{}", verb.get_name());
            insta::assert_snapshot!(name, verb.clone().term_width(100).render_long_help().to_string());
        }
    }

    /// A paragraph is one line, which only the terminal breaks. Lines of examples fit into 80 columns.
    #[test]
    fn help_after_the_options_is_wrapped_only_by_the_terminal() {
        let mut commands = vec![Command::command()];
        while let Some(command) = commands.pop() {
            let (name, help) = (command.get_name(), command.get_after_help().map(ToString::to_string));
            let (help, mut before) = (help.unwrap_or_default(), String::new());
            for line in help.lines() {
                let example = line.starts_with("  ");
                assert!(!example || line.chars().count() <= 80, "{name}: {line}");
                assert!(example || line.is_empty() || before.is_empty(), "{name} breaks a paragraph before: {line}");
                line.clone_into(&mut before);
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }
}
