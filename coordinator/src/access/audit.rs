//! The audit log, `audit.jsonl` in the access directory: who wanted what, when and from where, one JSON object a line. What is written
//! while this coordinator leads has the epoch and a number in it, and goes into the store too. So does, without them, what is written
//! while a coordinator serves whose store cannot be written yet. The file is written by [somebody else](super::writer): nothing here
//! waits for the disk but the reading of [lines for people](Tail).

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context as _, bail};
use evoxo_access::now_s;
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};

use super::writer::{Writer, Written};
use crate::{
    core::Rejection,
    store::{BATCH_BYTES_MAX, BATCH_LINES_MAX},
};

/// The file's name; the file before it has ".1" after that.
const FILE: &str = "audit.jsonl";
/// How much of the file is read for people, in bytes.
const READ_BYTES_MAX: u64 = 1 << 20;
/// How long people who read it wait for what is not written yet.
const READ_PATIENCE: Duration = Duration::from_secs(2);
/// The lines that may wait for the store. If it cannot be written for long, the oldest are on this host only.
const UNSAVED_MAX: usize = 10_000;
/// The identities that are remembered for what they were refused.
const REFUSED_MAX: usize = 10_000;
/// The lines about refusals that one identity may have at once; strangers have one, all together. One more comes in this time.
const BURST: u64 = 32;
const REFUSAL_INTERVAL_S: u64 = 60;
/// How long refusals alone wait for the store. It has room for a number of batches, so somebody who is refused all the time would push the
/// others out if each refusal made one.
const REFUSALS_WAIT_S: u64 = 3600;
/// The longest text of others in a line, in characters.
const TEXT_CHARS_MAX: usize = 300;

/// The outcome of what was done.
const DONE: &str = "done";
/// Before the reason, the outcome of what was refused, and of what may have been done.
const REFUSED: &str = "refused: ";
const UNKNOWN: &str = "unknown: ";

/// What became of something that somebody asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    Done,
    /// What had been granted before was granted again, for the token with this number.
    Again(&'a str),
    /// It was not done, for this reason.
    Refused(&'a str),
    /// It was answered with this reason, and may have been done all the same.
    Unknown(&'a str),
}

impl<'a> From<Result<(), &'a str>> for Outcome<'a> {
    fn from(done: Result<(), &'a str>) -> Self {
        done.map_or_else(Self::Refused, |()| Self::Done)
    }
}

impl<'a, T> From<&'a Result<T, Rejection>> for Outcome<'a> {
    fn from(answer: &'a Result<T, Rejection>) -> Self {
        match answer {
            Ok(_) => Self::Done,
            Err(rejection) if rejection.is_in_doubt() => Self::Unknown(rejection.sentence()),
            Err(rejection) => Self::Refused(rejection.sentence()),
        }
    }
}

/// Who asked for something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asker {
    /// The identity's number; empty for somebody without a certificate.
    pub(crate) id: String,
    pub(crate) role: &'static str,
    /// Without the port.
    pub(crate) address: String,
}

/// The refusals of an identity, or the repeated joins of a token.
#[derive(Debug)]
struct Refusals {
    /// Since when a further line is on its way.
    at_s: u64,
    /// The lines that it may have now.
    lines: u64,
    /// Those without a line since the last line.
    left_out: u64,
}

/// A line that the store does not have yet.
#[derive(Debug)]
struct Unsaved {
    line: String,
    at_s: u64,
    /// It says that something was refused, or granted again: somebody can bring about any number of such lines.
    refused: bool,
}

/// The open log.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    writer: Writer,
    /// Of each identity, of all strangers together as "", and of each token for joins that are repeated.
    refused: BTreeMap<String, Refusals>,
    /// The epoch in which this coordinator leads, and its lines so far.
    leads: Option<(u64, u64)>,
    /// Nobody can lead yet, because the store cannot be written.
    waits: bool,
    unsaved: VecDeque<Unsaved>,
}

impl Audit {
    /// Opens it, and begins it if there is none.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn open(directory: &Path) -> anyhow::Result<Self> {
        let path = directory.join(FILE);
        let writer = Writer::start(&path, lost)?;
        Ok(Self { path, writer, refused: BTreeMap::new(), leads: None, waits: false, unsaved: VecDeque::new() })
    }

    /// From now on this coordinator leads in this epoch, or does not lead.
    pub(crate) fn lead(&mut self, epoch: Option<u64>) {
        self.leads = epoch.map(|epoch| (epoch, 0));
        if !std::mem::take(&mut self.waits) {
            self.unsaved.clear();
        }
    }

    /// From now on lines wait for the store: this coordinator leads as soon as it can be written.
    pub(crate) fn wait(&mut self) {
        self.lead(None);
        self.waits = true;
    }

    /// The next lines for the store; none while only refusals wait, and not for long.
    pub(crate) fn unsaved(&self, now_s: u64) -> Vec<String> {
        let waits = |unsaved: &Unsaved| unsaved.refused && now_s < unsaved.at_s + REFUSALS_WAIT_S;
        if self.unsaved.len() < BATCH_LINES_MAX && self.unsaved.iter().all(waits) {
            return Vec::new();
        }
        let mut bytes = 0;
        let fits = |line: &&String| {
            bytes += line.len();
            bytes <= BATCH_BYTES_MAX
        };
        let lines = self.unsaved.iter().map(|unsaved| &unsaved.line);
        lines.take(BATCH_LINES_MAX).take_while(fits).cloned().collect()
    }

    /// The store has them.
    pub(crate) fn saved(&mut self, lines: &[String]) {
        // Some may have been dropped meanwhile.
        while self.unsaved.front().is_some_and(|unsaved| lines.contains(&unsaved.line)) {
            self.unsaved.pop_front();
        }
    }

    /// Adds a line. `object` is what the request was about: a run, a token, an identity.
    pub(crate) fn write(
        &mut self,
        now_s: u64,
        asker: &Asker,
        what: &str,
        object: &str,
        outcome: Outcome<'_>,
    ) -> Written {
        // Whose share of such lines it takes, and how many there may be at once.
        let share = match outcome {
            Outcome::Again(token) => Some((format!("token {token}"), 1)),
            Outcome::Refused(_) => Some((asker.id.clone(), if asker.id.is_empty() { 1 } else { BURST })),
            Outcome::Done | Outcome::Unknown(_) => None,
        };
        let refused = share.is_some();
        let mut line = line(now_s, asker, what, object, outcome);
        // Nobody must fill the disk with what is refused or granted again, or push others' lines out.
        if let Some((whose, burst)) = share {
            if self.refused.len() >= REFUSED_MAX {
                self.refused.retain(|_, refused| now_s < refused.at_s + REFUSAL_INTERVAL_S);
            }
            let new = || Refusals { at_s: now_s, lines: burst, left_out: 0 };
            let refused = self.refused.entry(whose).or_insert_with(new);
            let more = now_s.saturating_sub(refused.at_s) / REFUSAL_INTERVAL_S;
            refused.lines = burst.min(refused.lines + more);
            // A clock that was set back must not silence anybody.
            refused.at_s = now_s.min(refused.at_s + more * REFUSAL_INTERVAL_S);
            if refused.lines == 0 {
                refused.left_out += 1;
                return Written::default();
            }
            refused.lines -= 1;
            line["left_out"] = Value::from(std::mem::take(&mut refused.left_out));
        }
        if let Some((epoch, lines)) = &mut self.leads {
            *lines += 1;
            (line["epoch"], line["number"]) = (Value::from(*epoch), Value::from(*lines));
        }
        if self.waits || self.leads.is_some() {
            self.unsaved.push_back(Unsaved { line: line.to_string(), at_s: now_s, refused });
            if self.unsaved.len() > UNSAVED_MAX {
                self.unsaved.pop_front();
            }
        }
        self.writer.write(line.to_string())
    }

    /// The last line that was added.
    pub(crate) fn last(&self) -> Written {
        self.writer.last()
    }

    /// Counts the lines that are lost.
    pub(crate) fn lost(&self) -> Counter {
        self.writer.lost()
    }

    /// The end of the file, with what was added until now. It is read while others go on to add lines.
    pub(crate) fn tail(&self) -> Tail {
        Tail { path: self.path.clone(), last: self.last() }
    }
}

/// The end of the file.
pub(crate) struct Tail {
    path: PathBuf,
    last: Written,
}

impl Tail {
    /// The newest lines, oldest first, without refusals if `done`. Blocks.
    ///
    /// # Errors
    /// If the last of them is not written in time, or the file cannot be read.
    pub(crate) fn newest(&self, lines: usize, done: bool) -> anyhow::Result<Vec<String>> {
        let shown = self.path.display();
        if !self.last.wait_here(READ_PATIENCE) {
            bail!("the disk does not take the lines of {shown}");
        }
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            let from = file.metadata()?.len().saturating_sub(READ_BYTES_MAX);
            file.seek(SeekFrom::Start(from))?;
            file.take(READ_BYTES_MAX).read_to_end(&mut text)?;
            Ok(from)
        });
        let from = read.with_context(|| format!("cannot read {shown}"))?;
        let text = String::from_utf8_lossy(&text);
        // What is read may begin in the middle of a line, and end in the middle of one that is being written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let all: Vec<&str> =
            whole.lines().skip(usize::from(from > 0)).filter(|line| !done || says_done(line)).collect();
        Ok(all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect())
    }
}

/// Whether a line says that something was done or may have been, and not that it was refused.
pub(crate) fn says_done(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["outcome"].as_str().is_some_and(|outcome| outcome == DONE || outcome.starts_with(UNKNOWN))
}

/// The newest of the lines on this host and in the store, in order of time; each line that both have is there once.
pub(crate) fn merge(here: Vec<String>, stored: Vec<String>, count: usize) -> Vec<String> {
    let place = |line: &String| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let number = |name: &str| line[name].as_u64().unwrap_or(0);
        (line["time"].as_str().unwrap_or_default().to_owned(), number("epoch"), number("number"))
    };
    // By their whole text: after a store was restored, epochs and numbers come again.
    let (known, mut seen) = (here.iter().collect::<BTreeSet<_>>(), BTreeSet::new());
    let own = here.iter().map(|line| (place(line), line.clone()));
    // Lines from a time without a leader have no number, and the same line may be there several times.
    let stored = stored.iter().map(|line| (place(line), line.clone()));
    let stored =
        stored.filter(|((.., number), line)| !known.contains(line) && (*number == 0 || seen.insert(line.clone())));
    let mut all: Vec<_> = own.chain(stored).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all.drain(..all.len().saturating_sub(count));
    all.into_iter().map(|(_, line)| line).collect()
}

fn line(now_s: u64, asker: &Asker, what: &str, object: &str, outcome: Outcome<'_>) -> Value {
    let outcome = match outcome {
        Outcome::Done | Outcome::Again(_) => DONE.to_owned(),
        Outcome::Refused(why) => format!("{REFUSED}{}", cut(why)),
        Outcome::Unknown(why) => format!("{UNKNOWN}{}", cut(why)),
    };
    json!({
        "time": humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(now_s)).to_string(),
        "who": asker.id,
        "role": asker.role,
        "from": asker.address,
        "what": cut(what),
        "object": cut(object),
        "outcome": outcome,
    })
}

/// The line that says how many are missing in the file. The store may have them, so this one is not for it.
fn lost(count: u64) -> String {
    let own = Asker { role: "coordinator", ..Asker::default() };
    line(now_s(), &own, "lost", &format!("{count} lines that the disk did not take"), Outcome::Done).to_string()
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long before refusals have waited for an hour.
    const NOW: u64 = 9;

    #[test]
    fn lines_say_who_wanted_what_and_strangers_cannot_fill_the_disk() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        let asker = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        audit.write(0, &asker, "pause", "a \"run\"\n", Outcome::Done);
        for second in [1, 1, 60, 61] {
            audit.write(second, &Asker::default(), &"join".repeat(1000), "x", Outcome::Refused(&"no".repeat(1000)));
        }
        let lines: Vec<Value> =
            audit.tail().newest(10, false).unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 3);
        let first = json!({"time": "1970-01-01T00:00:00Z", "who": "0123456789ab", "role": "operator",
            "from": "10.0.0.7", "what": "pause", "object": "a \"run\"\n", "outcome": "done"});
        assert_eq!(lines[0], first);
        assert!(["what", "outcome"].iter().all(|part| lines[1][part].as_str().unwrap().len() < 400));
        assert_eq!((&lines[1]["left_out"], &lines[2]["left_out"]), (&json!(0), &json!(2)));
        assert_eq!(audit.tail().newest(1, false).unwrap().len(), 1);
        // Nor can anybody else push the lines of others out.
        let worker = Asker { id: "ba9876543210".into(), role: "worker", address: "10.0.0.8".into() };
        for second in [62, 122] {
            (0..100)
                .for_each(|_| drop(audit.write(second, &worker, "Pause", "", Outcome::Refused("your role is worker"))));
        }
        audit.write(122, &asker, "Pause", "", Outcome::Refused("it is finished"));
        let lines: Vec<Value> =
            audit.tail().newest(100, false).unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |who: &Asker| lines.iter().filter(|line| line["who"] == who.id.as_str()).collect::<Vec<_>>();
        assert_eq!((of(&worker).len(), of(&worker)[32]["left_out"].clone()), (33, json!(68)));
        assert_eq!(of(&asker).last().unwrap()["left_out"], json!(0));
    }

    /// Whoever has a token and its key cannot push an operator's lines out: not here, nor from the store.
    #[test]
    fn joins_that_are_repeated_share_a_line_a_minute() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        audit.lead(Some(1));
        let operator = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        audit.write(0, &operator, "create token", "token", Outcome::Done);
        audit.saved(&audit.unsaved(0));
        let again = |audit: &mut Audit, second, token, address: String| {
            let holder = Asker { address, ..Asker::default() };
            drop(audit.write(second, &holder, "join", token, Outcome::Again(token)));
        };
        (0..10_000).for_each(|each: u64| again(&mut audit, 1, "one", format!("10.0.{}.{}", each / 256, each % 256)));
        assert!(audit.unsaved(1).is_empty(), "no batch of the store for such lines alone");
        again(&mut audit, 1, "other", "10.0.0.9".into());
        again(&mut audit, 61, "one", "10.0.0.8".into());
        let lines: Vec<Value> =
            audit.tail().newest(1000, true).unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.iter().map(|line| &line["object"]).collect::<Vec<_>>(), ["token", "one", "other", "one"]);
        assert_eq!((&lines[1]["left_out"], &lines[3]["left_out"]), (&json!(0), &json!(9_999)));
        // A stranger's refusals have a share of their own.
        audit.write(61, &Asker::default(), "join", "x", Outcome::Refused("no"));
        assert_eq!(audit.tail().newest(1000, false).unwrap().len(), 5);
    }

    /// One who is refused all the time makes one batch an hour, and it has all that happened.
    #[test]
    fn refusals_alone_wait_for_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        let asker = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        audit.lead(Some(1));
        audit.write(0, &Asker::default(), "join", "x", Outcome::Refused("no"));
        assert!(audit.unsaved(REFUSALS_WAIT_S - 1).is_empty());
        assert_eq!(audit.unsaved(REFUSALS_WAIT_S).len(), 1);
        audit.write(1, &asker, "pause", "run", Outcome::Done);
        let both = audit.unsaved(1);
        assert_eq!(both.len(), 2, "others do not wait");
        assert_eq!(both.iter().map(|line| says_done(line)).collect::<Vec<_>>(), [false, true]);
        assert_eq!(audit.tail().newest(1, true).unwrap(), both[1..]);
        audit.saved(&both);
        for each in 0..BATCH_LINES_MAX as u64 {
            assert!(audit.unsaved(2).is_empty());
            let id = format!("{each:012x}");
            audit.write(2, &Asker { id, ..Asker::default() }, "pause", "run", Outcome::Refused("no"));
        }
        assert_eq!(audit.unsaved(2).len(), BATCH_LINES_MAX, "a full batch does not wait");
    }

    /// The store failed in the middle, or another coordinator leads: nobody may take what was perhaps done for refused.
    #[test]
    fn what_may_have_been_done_is_not_called_refused() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        let asker = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        audit.lead(Some(1));
        let answers = [
            (Ok(()), "done"),
            (Err(Rejection::Conflict("no".into())), "refused: no"),
            (Err(Rejection::Unavailable("no".into())), "refused: no"),
            (Err(Rejection::Unstored("the disk is full".into())), "unknown: the disk is full"),
            (Err(Rejection::Interrupted("another leads".into())), "unknown: another leads"),
        ];
        for (answer, outcome) in answers {
            drop(audit.write(1, &asker, "cancel", "run", (&answer).into()));
            let written = audit.tail().newest(1, false).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&written[0]).unwrap()["outcome"], outcome);
            assert_eq!(says_done(&written[0]), !outcome.starts_with("refused"), "{outcome}");
        }
        audit.saved(&audit.unsaved(1));
        drop(audit.write(2, &asker, "cancel", "run", Outcome::Unknown("another leads")));
        assert_eq!(audit.unsaved(2).len(), 1, "it does not wait for the store as refusals do");
    }

    /// A backup of the store was put back, and the coordinator leads in the same epoch once more.
    #[test]
    fn lines_whose_epoch_and_number_come_again_are_there() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        let mut stored = Vec::new();
        for (second, what) in [(1, "pause"), (2, "cancel")] {
            audit.lead(Some(2));
            audit.write(second, &Asker::default(), what, "r", Outcome::Done);
            stored.extend(audit.unsaved(NOW));
        }
        assert_eq!(merge(audit.tail().newest(9, false).unwrap(), stored.clone(), 9), stored);
        assert_eq!(merge(Vec::new(), [stored.clone(), stored.clone()].concat(), 9), stored);
    }

    #[test]
    fn lines_of_two_hosts_are_merged_in_order_and_each_is_there_once() {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [mut one, mut two] = [&one, &two].map(|directory| Audit::open(directory.path()).unwrap());
        let asker = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        one.write(1, &asker, "before", "", Outcome::Done);
        assert!(one.unsaved(NOW).is_empty(), "nobody leads");
        one.lead(Some(7));
        // The same twice in a second, and the third one is not in the store when the host is gone.
        (0..3).for_each(|_| drop(one.write(2, &asker, "pause", "r", Outcome::Done)));
        let batch: Vec<String> = one.unsaved(NOW).into_iter().take(2).collect();
        one.saved(&batch);
        assert_eq!(one.unsaved(NOW).len(), 1);
        two.lead(Some(8));
        two.write(2, &asker, "resume", "r", Outcome::Done);
        let stored = [batch, two.unsaved(NOW)].concat();
        let told = |here: &Audit, count| -> Vec<String> {
            let lines = merge(here.tail().newest(100, false).unwrap(), stored.clone(), count);
            let what =
                |line: &String| serde_json::from_str::<Value>(line).unwrap()["what"].as_str().unwrap().to_owned();
            lines.iter().map(what).collect()
        };
        assert_eq!(told(&one, 9), ["before", "pause", "pause", "pause", "resume"]);
        assert_eq!(told(&two, 9), ["pause", "pause", "resume"]);
        assert_eq!(told(&one, 2), ["pause", "resume"]);
    }

    /// The store cannot be written when the coordinator starts, and later it can.
    #[test]
    fn lines_wait_for_a_store_that_cannot_be_written_yet() {
        let directory = tempfile::tempdir().unwrap();
        let mut audit = Audit::open(directory.path()).unwrap();
        let asker = Asker { id: "0123456789ab".into(), role: "operator", address: "10.0.0.7".into() };
        let what = |lines: &[String]| -> Vec<Value> {
            lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["what"].clone()).collect()
        };
        audit.write(1, &asker, "standby", "", Outcome::Done);
        audit.wait();
        // Twice in a second.
        (0..2).for_each(|_| drop(audit.write(2, &asker, "pause", "r", Outcome::Done)));
        audit.lead(Some(7));
        audit.write(3, &asker, "lead", "", Outcome::Done);
        let stored = audit.unsaved(NOW);
        assert_eq!(what(&stored), ["pause", "pause", "lead"]);
        let told = merge(audit.tail().newest(9, false).unwrap(), stored.clone(), 9);
        assert_eq!(what(&told), ["standby", "pause", "pause", "lead"], "each is there once");
        assert_eq!(what(&merge(Vec::new(), stored, 9)), ["pause", "pause", "lead"], "the host is gone");
        audit.lead(Some(8));
        assert!(audit.unsaved(NOW).is_empty(), "what another time as leader has left is not told anew");
    }
}
