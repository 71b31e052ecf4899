//! The newest warnings of the log, for the page: which worker was lost or refused, and why.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use crate::core::Topic;

/// The most warnings that are kept.
const NEWS_MAX: usize = 64;
/// The most characters of a sentence.
const CHARACTERS_MAX: usize = 400;

/// A warning.
#[derive(Clone, Debug)]
pub(crate) struct NewsItem {
    /// Counted from 1 since the process started.
    pub(crate) number: u64,
    /// Seconds since 1970.
    pub(crate) at_s: u64,
    pub(crate) topic: Topic,
    pub(crate) sentence: String,
}

/// All warnings, the newest last. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct News(Arc<Mutex<VecDeque<NewsItem>>>);

impl News {
    pub(crate) fn add(&self, topic: Topic, sentence: &str) {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = items.back().map_or(0, |last| last.number) + 1;
        let sentence = sentence.chars().take(CHARACTERS_MAX).collect();
        items.push_back(NewsItem { number, at_s: unix_seconds(), topic, sentence });
        if items.len() > NEWS_MAX {
            items.pop_front();
        }
    }

    /// The warnings after this number.
    pub(crate) fn after(&self, number: u64) -> Vec<NewsItem> {
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        items.iter().filter(|item| item.number > number).cloned().collect()
    }
}

/// The time on this host's clock, in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_messages_are_kept() {
        let news = News::default();
        (0..200).for_each(|number| news.add(Topic::Trouble, &format!("{number} {}", "ä".repeat(1000))));
        let all = news.after(0);
        assert_eq!((all.len(), all[0].number, news.after(199).len()), (NEWS_MAX, 137, 1));
        assert_eq!(all[0].sentence.chars().count(), CHARACTERS_MAX);
    }
}
