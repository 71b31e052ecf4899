//! The header in every response of a coordinator that leads.

use std::{collections::BTreeMap, fmt, str::FromStr};

/// The header of the responses of a coordinator that leads: its cluster and its epoch, for example
/// `00112233445566778899aabbccddeeff:7`. A standby does not send it.
pub const LEADER_HEADER: &str = "evoxo-leader";

/// The header with which a standby asks for the leader's health. It shows the leader that another coordinator can take over.
pub const STANDBY_HEADER: &str = "evoxo-standby";

/// The header with which a worker tells the highest epochs that it has seen, `CLUSTER:EPOCH` separated by commas. A coordinator
/// that leads in an earlier one learns from it why its workers stay away.
pub const SEEN_HEADER: &str = "evoxo-seen";

/// The number of digits of a cluster's identifier.
const CLUSTER_DIGITS: usize = 32;

/// Which cluster a coordinator leads, and in which epoch. Of two coordinators of one cluster, the one with the higher epoch
/// leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Led {
    /// Lower-case hexadecimal digits, drawn when the cluster's store was first used.
    pub cluster: String,
    /// The epoch's number, from 1.
    pub epoch: u64,
}

impl Led {
    /// The cluster with this identifier, led in this epoch.
    #[must_use]
    pub fn new(cluster: [u8; CLUSTER_DIGITS / 2], epoch: u64) -> Self {
        Self { cluster: cluster.iter().map(|byte| format!("{byte:02x}")).collect(), epoch }
    }
}

impl fmt::Display for Led {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.cluster, self.epoch)
    }
}

impl FromStr for Led {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const FORM: &str = "it names no cluster and epoch";
        let (cluster, epoch) = text.split_once(':').ok_or(FORM)?;
        let plain = cluster.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let epoch = epoch.parse().map_err(|_| FORM)?;
        if cluster.len() != CLUSTER_DIGITS || !plain {
            return Err(FORM);
        }
        Ok(Self { cluster: cluster.to_owned(), epoch })
    }
}

/// The most clusters whose epochs are remembered.
const CLUSTERS_MAX: usize = 16;

/// The highest epoch of each cluster that a client has seen. As text, it has a line for each cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<String, u64>);

impl Seen {
    /// Whether a coordinator that sends this may be used. False if a higher epoch of its cluster was seen: then it no longer
    /// leads, but does not know it yet.
    pub fn accepts(&mut self, led: &Led) -> bool {
        if !self.0.contains_key(&led.cluster) && self.0.len() >= CLUSTERS_MAX {
            // Only an attacker has that many.
            self.0.clear();
        }
        let highest = self.0.entry(led.cluster.clone()).or_default();
        *highest = (*highest).max(led.epoch);
        *highest == led.epoch
    }
}

impl Seen {
    /// The value of [`SEEN_HEADER`].
    #[must_use]
    pub fn header(&self) -> String {
        let each: Vec<String> = self.0.iter().map(|(cluster, epoch)| format!("{cluster}:{epoch}")).collect();
        each.join(",")
    }

    /// The epoch in a value of [`SEEN_HEADER`] that is later than the one in which a coordinator leads, if there is one.
    #[must_use]
    pub fn later(header: &str, led: &Led) -> Option<u64> {
        let seen = header.split(',').take(CLUSTERS_MAX).filter_map(|each| each.parse::<Led>().ok());
        seen.filter(|seen| seen.cluster == led.cluster && seen.epoch > led.epoch).map(|seen| seen.epoch).max()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(cluster, epoch)| writeln!(f, "{cluster}:{epoch}"))
    }
}

impl FromStr for Seen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let mut seen = Self::default();
        for line in text.lines() {
            seen.accepts(&line.parse()?);
        }
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_tells_which_epochs_it_has_seen() {
        let (mut seen, led) = (Seen::default(), |epoch| Led::new([7; 16], epoch));
        assert_eq!(Seen::later(&seen.header(), &led(1)), None);
        assert!(seen.accepts(&led(5)) && seen.accepts(&Led::new([8; 16], 9)));
        let header = seen.header();
        assert_eq!([4, 5, 6].map(|epoch| Seen::later(&header, &led(epoch))), [Some(5), None, None]);
        assert_eq!(Seen::later(&format!("x,{header},:,"), &led(4)), Some(5));
    }

    #[test]
    fn lower_epochs_of_the_same_cluster_are_rejected() {
        let mut seen = Seen::default();
        for (cluster, epoch, accepted) in
            [(1, 5, true), (1, 5, true), (1, 4, false), (2, 1, true), (1, 6, true), (1, 5, false), (2, 1, true)]
        {
            assert_eq!(seen.accepts(&Led::new([cluster; 16], epoch)), accepted, "{cluster} {epoch}");
        }
        assert_eq!(seen.to_string().parse(), Ok(seen.clone()));
        (10..200).for_each(|cluster| assert!(seen.accepts(&Led::new([cluster; 16], 1))));
        assert!(seen.0.len() <= CLUSTERS_MAX);
    }

    #[test]
    fn only_written_leader_records_can_be_read() {
        let led = Led::new([0xab; 16], 12);
        assert_eq!(led.to_string().parse(), Ok(led));
        for bad in ["", ":", "ab:1", "abababababababababababababababAB:1", "abababababababababababababababab:x"] {
            assert!(bad.parse::<Led>().is_err(), "{bad}");
            assert_eq!(bad.parse::<Seen>().is_err(), !bad.is_empty(), "{bad}");
        }
    }
}
