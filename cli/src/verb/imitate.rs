//! `evoxo imitate CHAMPION`: trains a network to play 3x3 as a champion does, and computes its exact odds.

use std::{fs, io::Write as _, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, anyhow};
use evoxo_common::{experiment::Registry, rng::Stream};
use evoxo_games::net::imitate::{Course, card, exact, learn, lessons};
use serde_json::json;

use crate::{
    champion, file,
    say::{notice, stdout, usage, whole},
};

/// The teacher, the training and the file for the network.
#[derive(clap::Args)]
#[command(
    after_help = "The network learns the champion's move on every board that its play can lead to, whatever the \
opponent does. If the champion always completes or blocks a line first, as tables do, so does the network, and it \
learns only the other boards. The same seed gives the same network on every machine.

Example:
  evoxo imitate CHAMPION.json --out pupil.json
  evoxo play pupil.json --side x"
)]
pub(crate) struct Arguments {
    /// The champion to imitate: the card of a 3x3 player that makes no random choices
    file: PathBuf,
    /// The file for the network's card; the weights go next to it, with the extension .safetensors
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Number of hidden units
    #[arg(long, default_value = "50", value_parser = whole::<usize>(1, 1024))]
    units: usize,
    /// The most passes over all boards; training ends earlier if every move is learnt
    #[arg(long, default_value = "2000", value_parser = whole::<u32>(1, 1_000_000))]
    passes: u32,
    /// The seed for the initial weights and for the order of the boards
    #[arg(long, default_value = "1", value_parser = whole::<u64>(0, u64::MAX))]
    seed: u64,
    /// Print JSON: lessons, known, pass and the exact odds
    #[arg(long)]
    json: bool,
}

/// The learning rate. At twice this rate, some champions of X were not learnt completely.
const RATE: f32 = 0.01;

pub(crate) fn run(arguments: &Arguments, registry: &Registry) -> anyhow::Result<ExitCode> {
    let Arguments { file: who, out, units, passes, seed, .. } = arguments;
    let stem =
        out.file_stem().and_then(|stem| stem.to_str()).filter(|_| out.extension().is_some_and(|it| it == "json"));
    let stem = stem.ok_or_else(|| usage(format_args!("{} is not a name for a card: give NAME.json", out.display())))?;
    let (_, mut teacher) = champion::read_player(registry, who)?;
    let lessons = lessons(&mut teacher).map_err(|why| anyhow!("{}: {why}", who.display()))?;
    if file::same(out, who) {
        return Err(usage(format_args!("{} is the teacher itself: choose another file with --out", out.display())));
    }
    notice(format_args!("the network learns the moves on {} boards, in at most {passes} passes", lessons.boards.len()));
    let stream = Stream::root(*seed).text("imitate");
    let learnt = learn(&lessons, Course { units: *units, rate: RATE, passes: *passes, stream });
    let (text, file) = card(&lessons, &learnt).write(stem);
    let unwritable = || format!("cannot write {}: choose another file with --out", out.display());
    if let Some((name, bytes)) = file {
        fs::write(out.with_file_name(name), bytes).with_context(unwritable)?;
    }
    fs::write(out, text).with_context(unwritable)?;
    let exact = exact(&lessons, &learnt);
    let (all, known, pass) = (lessons.boards.len(), learnt.known, learnt.pass);
    let mut stdout = stdout();
    if arguments.json {
        let found = json!({"lessons": all, "known": known, "pass": pass, "odds": exact.json});
        writeln!(stdout, "{found:#}")?;
    } else {
        writeln!(stdout, "After {pass} passes the network plays the champion's moves on {known} of {all} boards.\n")?;
        writeln!(stdout, "{}\nThe network is in {}", exact.text, out.display())?;
    }
    Ok(ExitCode::SUCCESS)
}
