//! Selects runs of a coordinator, by name, pattern, state, owner and age.

use std::time::Duration;

use anyhow::bail;
use evoxo_access::now_s;
use evoxo_process::duration;
use evoxo_proto::shown::state;
use evoxo_proto::v1::{self, RunState};

use crate::{
    remote::{Client, refused},
    say::{program, usage},
};

/// The runs.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Which {
    /// Names of runs. * matches any characters and ? any one character; put such names in quotes
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only runs in this state
    #[arg(long, value_name = "STATE", value_parser = known_state)]
    state: Option<RunState>,
    /// Only runs that this identity, or this address, has submitted
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Only runs that were finished or cancelled at least this long ago, or submitted so long ago if they have not ended: 12h,
    /// 30d
    #[arg(long, value_name = "TIME", value_parser = duration)]
    older: Option<Duration>,
}

/// Parses a state from the word that is shown for it.
fn known_state(text: &str) -> Result<RunState, String> {
    let all = (1..).map_while(|number| RunState::try_from(number).ok());
    let word = |of: RunState| state(&v1::Run { state: of.into(), ..v1::Run::default() });
    all.clone().find(|of| word(*of) == text).ok_or_else(|| {
        let words: Vec<&str> = all.map(word).collect();
        format!("a run is {}", words.join(", "))
    })
}

/// Whether a name matches a pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // The position of the last star, and the first character that it does not match.
    let mut star = None;
    while place < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(one) if *one == b'?' || *one == name[place] => (at, place) = (at + 1, place + 1),
            _ => {
                let Some((stars_at, stands_for)) = star else { return false };
                star = Some((stars_at, stands_for + 1));
                (at, place) = (stars_at + 1, stands_for + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}

impl Which {
    /// Whether nothing is selected, neither by name nor in another way.
    pub(crate) fn is_all(&self) -> bool {
        self.names.is_empty() && !self.filters()
    }

    fn filters(&self) -> bool {
        self.state.is_some() || self.owner.is_some() || self.older.is_some()
    }

    /// The name, if exactly one run is selected, by its name alone.
    fn only(&self) -> Option<&String> {
        let [name] = &self.names[..] else { return None };
        Some(name).filter(|name| !self.filters() && !name.contains(['*', '?']))
    }

    /// The names of the selected runs, each once. A single name is not looked up: the request that uses it finds out whether
    /// there is such a run.
    pub(crate) async fn names(&self, client: &mut Client) -> anyhow::Result<Vec<String>> {
        if self.is_all() {
            return Err(usage("name the runs, or select them with --state, --owner or --older"));
        }
        if let Some(name) = self.only() {
            return Ok(vec![name.clone()]);
        }
        Ok(self.runs(client).await?.into_iter().map(|run| run.name).collect())
    }

    /// The selected runs with their dates; an error if a name matches none.
    pub(crate) async fn runs(&self, client: &mut Client) -> anyhow::Result<Vec<v1::Run>> {
        let request = v1::ListRequest { dates: true };
        self.of(client.list(request).await.map_err(refused)?.into_inner().runs, now_s())
    }

    /// The selected runs among these; an error if a name matches none of them.
    fn of(&self, runs: Vec<v1::Run>, now_s: u64) -> anyhow::Result<Vec<v1::Run>> {
        for name in &self.names {
            if !runs.iter().any(|run| fits(name.as_bytes(), run.name.as_bytes())) {
                bail!("there is no run {name:?} here: `{} runs` lists them", program());
            }
        }
        let named = |run: &v1::Run| {
            self.names.is_empty() || self.names.iter().any(|name| fits(name.as_bytes(), run.name.as_bytes()))
        };
        let state = |run: &v1::Run| self.state.is_none_or(|state| run.state() == state);
        let owner = |run: &v1::Run| self.owner.as_ref().is_none_or(|owner| run.submitter == *owner);
        let older = |run: &v1::Run| {
            let since_s = if run.ended > 0 { run.ended } else { run.submitted };
            // A run whose date is not known may be new.
            self.older.is_none_or(|age| since_s > 0 && since_s.saturating_add(age.as_secs()) <= now_s)
        };
        Ok(runs.into_iter().filter(|run| named(run) && state(run) && owner(run) && older(run)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        let fit =
            [("a*", "abc"), ("*", ""), ("a?c", "abc"), ("*b*d", "abcbd"), ("a", "a"), ("a**", "a"), ("*c", "abcc")];
        let others = [("a*", "ba"), ("a?", "a"), ("", "a"), ("*b", "abc"), ("a", "ab"), ("a?c", "ac")];
        assert!(fit.iter().all(|(pattern, name)| fits(pattern.as_bytes(), name.as_bytes())));
        assert!(!others.iter().any(|(pattern, name)| fits(pattern.as_bytes(), name.as_bytes())));
    }

    #[test]
    fn a_run_must_match_all_criteria() {
        let run = |name: &str, state: RunState, submitter: &str| {
            let (name, submitter) = (name.into(), submitter.into());
            v1::Run { name, submitter, state: state.into(), ..v1::Run::default() }
        };
        let runs =
            [run("a-1", RunState::Finished, "x"), run("a-2", RunState::Failed, "x"), run("b", RunState::Finished, "y")];
        let meant = |names: &[&str], state: Option<&str>, owner: Option<&str>| {
            let names = names.iter().map(ToString::to_string).collect();
            let state = state.map(|state| known_state(state).unwrap());
            let which = Which { names, state, owner: owner.map(str::to_owned), older: None };
            which.of(runs.to_vec(), 0).map(|runs| runs.into_iter().map(|run| run.name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(meant(&["a-*"], None, None).unwrap(), "a-1 a-2");
        assert_eq!(meant(&["a-*", "b"], Some("finished"), None).unwrap(), "a-1 b");
        assert_eq!(meant(&[], Some("finished"), Some("x")).unwrap(), "a-1");
        assert_eq!(meant(&[], Some("in doubt"), None).unwrap(), "");
        let missing = meant(&["b", "c*"], None, None).unwrap_err().to_string();
        assert!(missing.starts_with("there is no run \"c*\" here"), "{missing}");
        let old = |days: u64| {
            let older = Some(Duration::from_secs(days * 24 * 3600));
            let dated = [(1, 0), (1, 9), (0, 0)].into_iter().zip(runs.to_vec()).map(|((submitted, ended), run)| {
                v1::Run { submitted: submitted * 24 * 3600, ended: ended * 24 * 3600, ..run }
            });
            let found = Which { older, ..Which::default() }.of(dated.collect(), 10 * 24 * 3600).unwrap();
            found.into_iter().map(|run| run.name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!([1, 2, 9, 10].map(old), ["a-1 a-2", "a-1", "a-1", ""], "the third has no date");
        assert!(known_state("done").unwrap_err().contains("running, paused"), "{:?}", known_state("done"));
    }
}
