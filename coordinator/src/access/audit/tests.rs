//! The audit log: two parts, with shares.

use serde_json::json;

use super::*;
use crate::core::Rejection;

/// A time at which refusals still wait for the store.
const NOW: u64 = 9;

fn operator() -> Asker {
    Asker {
        id: "0123456789ab".into(),
        role: "operator",
        address: "10.0.0.7".into(),
        account: String::new(),
        strong: true,
    }
}

fn worker(id: u64, account: &str) -> Asker {
    let (id, account) = (format!("{id:012x}"), account.to_owned());
    Asker { id, role: "worker", address: "10.0.0.8".into(), account, strong: false }
}

fn stranger(last: u64) -> Asker {
    Asker { address: format!("10.0.{}.{}", last / 256, last % 256), ..Asker::default() }
}

fn read(lines: &[String]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The lines of each part on this host.
fn here(audit: &Audit, lines: usize, done: bool) -> [Vec<String>; 2] {
    audit.tails().map(|tail| tail.newest(lines, done).unwrap())
}

/// The lines of each part that the store does not have.
fn unsaved(audit: &mut Audit, now_s: u64) -> [Vec<String>; 2] {
    LogPart::ALL.map(|part| audit.unsaved(part, now_s))
}

/// The content of all lines on this host.
fn all(audit: &Audit) -> Vec<Value> {
    read(&merge(here(audit, 10_000, false), Default::default(), 10_000))
}

#[test]
fn lines_name_the_caller_and_strangers_cannot_fill_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    audit.write(0, &operator(), "pause", "a \"run\"\n", Outcome::Done);
    let refused = Outcome::Refused("no");
    let long = (&*"join".repeat(1000), &*"no".repeat(1000));
    (0..20).for_each(|_| drop(audit.write(1, &stranger(1), long.0, "x", Outcome::Refused(long.1))));
    // One loud address does not hide another.
    drop(audit.write(1, &stranger(2), "join", "y", refused));
    drop(audit.write(61, &stranger(1), "join", "z", refused));
    let lines = all(&audit);
    let first = json!({"time": "1970-01-01T00:00:00Z", "who": "0123456789ab", "role": "operator",
        "from": "10.0.0.7", "what": "pause", "object": "a \"run\"\n", "outcome": "done"});
    assert_eq!((lines.len(), &lines[0]), (11, &first));
    assert!(["what", "outcome"].iter().all(|part| lines[1][part].as_str().unwrap().len() < 400));
    assert_eq!([1, 9, 10].map(|line| lines[line]["left_out"].clone()), [json!(0), json!(0), json!(12)]);
    assert_eq!(lines[9]["object"], "y");
    // All strangers together have few lines as well.
    (0..2000).for_each(|each| drop(audit.write(61, &stranger(each), "join", "x", refused)));
    assert_eq!(all(&audit).len(), 11 + 63);
    // Nor can anybody push out the lines of others.
    let before = all(&audit).len();
    for second in [62, 122] {
        (0..100).for_each(|_| drop(audit.write(second, &worker(1, "t"), "Pause", "", refused)));
    }
    let of = |audit: &Audit, id: &Asker| {
        all(audit).into_iter().filter(|line| line["who"] == id.id.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of(&audit, &worker(1, "t")).len(), of(&audit, &worker(1, "t"))[32]["left_out"].clone()),
        (33, json!(68))
    );
    // The limit applies however many identities a token admits.
    (0..3000).for_each(|each| drop(audit.write(122, &worker(each, "t"), "Pause", "", refused)));
    assert_eq!(all(&audit).len() - before, 1024 + 4);
    drop(audit.write(122, &worker(9, "other"), "Pause", "", refused));
    assert_eq!(of(&audit, &worker(9, "other")).last().unwrap()["left_out"], json!(0));
}

/// Lines of operators and about rights have a file and batches of their own, whatever others do.
#[test]
fn weaker_roles_cannot_push_out_lines_of_operators() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    audit.lead(Some(1));
    (0..30).for_each(|each| drop(audit.write(each, &operator(), "create token", &format!("{each}"), Outcome::Done)));
    let token = |audit: &mut Audit, now_s: u64| {
        let newcomer = Asker { account: "t".into(), ..stranger(now_s % 999) };
        drop(audit.write(now_s, &newcomer, "join", "x", Outcome::Done));
        drop(audit.write(now_s, &newcomer, "join", "x", Outcome::Again));
        drop(audit.write(now_s, &stranger(now_s % 999), "login on the page", "x", Outcome::Refused("no")));
        drop(audit.write(now_s, &worker(now_s, "t"), "submit", "x", Outcome::Refused("no")));
        drop(audit.write(now_s, &worker(now_s, "t"), "logout on the page", "x", Outcome::Done));
        drop(audit.write(now_s, &Asker::own("t"), "convict", "x", Outcome::Done));
        drop(audit.write(now_s, &Asker::own("void"), "void", "x", Outcome::Done));
    };
    let (mut rights, mut others) = ((0, 0), (0, 0));
    let mut stored: [Vec<String>; 2] = Default::default();
    for second in 0..20_000 {
        token(&mut audit, 40 + second / 10);
        if second % 20 == 0 {
            for (part, batches) in [(LogPart::Rights, &mut rights), (LogPart::Others, &mut others)] {
                let lines = audit.unsaved(part, 40 + second / 10);
                audit.saved(part, 40 + second / 10, &lines);
                batches.0 += usize::from(!lines.is_empty());
                batches.1 += lines.len();
                stored[part as usize].extend(lines);
            }
        }
    }
    // The lines of half an hour: 32 for each of the two causes.
    assert_eq!(rights.1, 30 + 64);
    assert!(others.1 < 4500 && others.0 < 64 + 4 + others.1 / BATCH_LINES_MAX, "{others:?}");
    for (here, stored) in [(here(&audit, 1000, true), Default::default()), (Default::default(), stored)] {
        let told = read(&merge(here, stored, 1000));
        let own = told.iter().filter(|line| line["what"] == "create token").count();
        assert_eq!((own, told.len()), (30, 1000));
        assert!(told.is_sorted_by_key(|line| line["time"].as_str().map(str::to_owned)));
    }
}

/// Repeated joins are counted, and the count is written even if no further join follows.
#[test]
fn repeated_joins_are_only_counted() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    audit.lead(Some(1));
    let again = |audit: &mut Audit, second, token: &str, address| {
        let holder = Asker { account: token.into(), ..stranger(address) };
        drop(audit.write(second, &holder, "join", token, Outcome::Again));
    };
    (0..10_000).for_each(|each| again(&mut audit, 1, "one", each));
    again(&mut audit, 1, "other", 9);
    assert!(audit.unsaved(LogPart::Others, 1).is_empty(), "such lines alone make no batch in the store");
    let told = |audit: &Audit| -> Vec<(String, u64)> {
        let told = |line: &Value| (line["object"].as_str().unwrap().to_owned(), line["left_out"].as_u64().unwrap());
        all(audit).iter().map(told).collect()
    };
    let at_once = [("one".to_owned(), 0), ("other".to_owned(), 0)];
    audit.write_left_out(3600);
    assert_eq!(told(&audit), at_once);
    audit.write_left_out(3601);
    assert_eq!(told(&audit), [at_once[0].clone(), at_once[1].clone(), ("one".into(), 9_998)]);
    audit.write_left_out(9999);
    again(&mut audit, 9999, "one", 7);
    assert_eq!(told(&audit).last(), Some(&("one".into(), 0)), "each repeated join is counted once");
    assert_eq!(told(&audit).len(), 4);
}

/// A line left out of one share waits for all shares that it needs.
#[test]
fn refusals_of_many_strangers_are_written_later_and_slowly() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    audit.lead(Some(1));
    for _ in 0..9 {
        (0..999).for_each(|each| drop(audit.write(1, &stranger(each), "join", "x", Outcome::Refused("no"))));
    }
    let before = all(&audit).len();
    (2..62).for_each(|second| audit.write_left_out(second));
    let more = all(&audit).len() - before;
    assert!((1..=30).contains(&more), "{more}");
    let left_out: u64 = all(&audit).iter().map(|line| line["left_out"].as_u64().unwrap()).sum();
    assert!(left_out > 5000, "{left_out}");
}

/// An answer of a few lines also has lines of the other part.
#[test]
fn other_lines_get_half_of_the_shown_lines() {
    let line = |second: u64, what: &str| line::line(second, &operator(), what, "", Outcome::Done).to_string();
    let many = |what: &str, count: u64| (0..count).map(|second| line(second, what)).collect::<Vec<_>>();
    let shown = |rights: u64, others: u64, count: usize| {
        let told = read(&merge([many("r", rights), many("o", others)], Default::default(), count));
        let of = |what: &str| told.iter().filter(|line| line["what"] == what).count();
        (of("r"), of("o"))
    };
    assert_eq!(shown(50, 50, 10), (5, 5));
    assert_eq!(shown(3, 50, 10), (3, 7));
    assert_eq!(shown(50, 3, 10), (7, 3));
    assert_eq!(shown(2, 3, 10), (2, 3));
    assert_eq!(shown(5, 5, 1), (1, 0));
}

/// A caller that is refused all the time makes one batch per hour, and the batch has everything that happened.
#[test]
fn only_refusals_wait_before_they_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    let asker = operator();
    audit.lead(Some(1));
    audit.write(0, &asker, "pause", "run", Outcome::Refused("no"));
    let rights = LogPart::Rights;
    assert!(audit.unsaved(rights, SAVE_WAIT_S - 1).is_empty());
    assert_eq!(audit.unsaved(rights, SAVE_WAIT_S).len(), 1);
    audit.write(1, &asker, "pause", "run", Outcome::Done);
    let both = audit.unsaved(rights, 1);
    assert_eq!(both.len(), 2, "other lines do not wait");
    assert_eq!(both.iter().map(|line| says_done(line)).collect::<Vec<_>>(), [false, true]);
    assert_eq!(here(&audit, 1, true)[0], both[1..]);
    audit.saved(rights, 1, &both);
    for each in 0..BATCH_LINES_MAX as u64 {
        assert!(audit.unsaved(LogPart::Others, 2).is_empty());
        audit.write(2, &worker(each, &format!("{}", each / 500)), "pause", "run", Outcome::Refused("no"));
    }
    assert_eq!(audit.unsaved(LogPart::Others, 2).len(), BATCH_LINES_MAX, "a full batch does not wait");
}

/// The store failed half way, or another coordinator leads: an action that may have been carried out must not look refused.
#[test]
fn actions_that_may_have_happened_are_not_logged_as_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    let asker = operator();
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
        let [written, _] = here(&audit, 1, false);
        assert_eq!(serde_json::from_str::<Value>(&written[0]).unwrap()["outcome"], outcome);
        assert_eq!(says_done(&written[0]), !outcome.starts_with("refused"), "{outcome}");
    }
    let written = audit.unsaved(LogPart::Rights, 1);
    audit.saved(LogPart::Rights, 1, &written);
    drop(audit.write(2, &asker, "cancel", "run", Outcome::Unknown("another leads")));
    assert_eq!(audit.unsaved(LogPart::Rights, 2).len(), 1, "the line does not wait for the store as refusals do");
}

/// A backup of the store was restored, and the coordinator leads in the same epoch again.
#[test]
fn lines_with_a_repeated_epoch_and_number_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    let mut stored = Vec::new();
    for (second, what) in [(1, "pause"), (2, "cancel")] {
        audit.lead(Some(2));
        audit.write(second, &operator(), what, "r", Outcome::Done);
        stored.extend(audit.unsaved(LogPart::Rights, NOW));
    }
    let of_store = |stored: &[String]| [stored.to_vec(), Vec::new()];
    assert_eq!(merge(here(&audit, 9, false), of_store(&stored), 9), stored);
    assert_eq!(merge(Default::default(), of_store(&[stored.clone(), stored.clone()].concat()), 9), stored);
}

#[test]
fn lines_of_two_hosts_are_merged_in_order_without_duplicates() {
    let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [mut one, mut two] = [&one, &two].map(|directory| Audit::open(directory.path()).unwrap());
    let asker = operator();
    one.write(1, &asker, "before", "", Outcome::Done);
    assert!(one.unsaved(LogPart::Rights, NOW).is_empty(), "no coordinator leads");
    one.lead(Some(7));
    // The same action happens three times in one second. The store has two of the lines when the host is lost.
    (0..3).for_each(|_| drop(one.write(2, &asker, "pause", "r", Outcome::Done)));
    let batch: Vec<String> = one.unsaved(LogPart::Rights, NOW).into_iter().take(2).collect();
    one.saved(LogPart::Rights, NOW, &batch);
    assert_eq!(one.unsaved(LogPart::Rights, NOW).len(), 1);
    two.lead(Some(8));
    // A line of the other part, too.
    two.write(1, &worker(1, "t"), "logout", "", Outcome::Done);
    two.write(2, &asker, "resume", "r", Outcome::Done);
    let [rights, others] = unsaved(&mut two, NOW);
    let stored = [[batch, rights].concat(), others];
    let told = |of: &Audit, count| -> Vec<String> {
        let lines = merge(here(of, 100, false), stored.clone(), count);
        let what = |line: &String| serde_json::from_str::<Value>(line).unwrap()["what"].as_str().unwrap().to_owned();
        lines.iter().map(what).collect()
    };
    assert_eq!(told(&one, 9), ["before", "logout", "pause", "pause", "pause", "resume"]);
    assert_eq!(told(&two, 9), ["logout", "pause", "pause", "resume"]);
    assert_eq!(told(&one, 2), ["logout", "resume"], "each part gets one of the two lines");
}

/// The store cannot be written when the coordinator starts, but later it can.
#[test]
fn lines_wait_until_the_store_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let mut audit = Audit::open(directory.path()).unwrap();
    let asker = operator();
    let what = |lines: &[String]| -> Vec<Value> {
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["what"].clone()).collect()
    };
    audit.write(1, &asker, "standby", "", Outcome::Done);
    audit.wait();
    // The same action twice in one second.
    (0..2).for_each(|_| drop(audit.write(2, &asker, "pause", "r", Outcome::Done)));
    audit.lead(Some(7));
    audit.write(3, &asker, "lead", "", Outcome::Done);
    let stored = unsaved(&mut audit, NOW);
    assert_eq!(what(&stored[0]), ["pause", "pause", "lead"]);
    let told = merge(here(&audit, 9, false), stored.clone(), 9);
    assert_eq!(what(&told), ["standby", "pause", "pause", "lead"], "each line is there once");
    assert_eq!(what(&merge(Default::default(), stored, 9)), ["pause", "pause", "lead"], "the other host is gone");
    audit.lead(Some(8));
    assert!(audit.unsaved(LogPart::Rights, NOW).is_empty(), "lines of an earlier period as leader are not repeated");
}
