//! A store in memory that keeps what was acknowledged, may keep or tear what was not, and now and then flips a bit.

use std::collections::BTreeMap;

use bytes::Bytes;
use evoxo_common::rng::{Generator, below};
use evoxo_coordinator::{
    core::Write,
    saved::{SavedRun, interpret, object_name, object_number},
};

/// Objects by run and name.
#[derive(Default)]
pub(crate) struct Disk {
    objects: BTreeMap<String, BTreeMap<String, Bytes>>,
}

impl Disk {
    pub(crate) fn write(&mut self, run: &str, write: &Write) {
        let objects = self.objects.entry(run.to_owned()).or_default();
        match (object_name(write), write) {
            (
                Some(name),
                Write::Order { bytes, .. }
                | Write::Checkpoint { bytes, .. }
                | Write::Finished { bytes, .. }
                | Write::Poison { bytes, .. },
            ) => {
                objects.entry(name).or_insert_with(|| bytes.clone());
            }
            (_, Write::DropCheckpoints) => objects.retain(|name, _| object_number(name, "checkpoint").is_none()),
            (_, Write::Delete) => drop(self.objects.remove(run)),
            (None, _) => unreachable!("a write that creates an object has a name for it"),
        }
    }

    /// A crash in the middle of a write: nothing of it is there, or all, or a torn piece under its name.
    pub(crate) fn crash_during(&mut self, rng: &mut Generator, run: &str, write: &Write) {
        match below(rng, 3) {
            0 => {}
            1 => self.write(run, write),
            _ => {
                if let (Some(name), Write::Checkpoint { bytes, .. } | Write::Finished { bytes, .. }) =
                    (object_name(write), write)
                {
                    let length = below(rng, bytes.len() as u64) as usize;
                    self.objects
                        .entry(run.to_owned())
                        .or_default()
                        .entry(name)
                        .or_insert_with(|| bytes.slice(..length));
                }
            }
        }
    }

    /// Flips one bit of one checkpoint or finished replica; false if there is none.
    pub(crate) fn flip(&mut self, rng: &mut Generator) -> bool {
        let eligible = |name: &&String| !name.starts_with("order/");
        let names: Vec<(String, String)> = self
            .objects
            .iter()
            .flat_map(|(run, objects)| objects.keys().filter(eligible).map(|name| (run.clone(), name.clone())))
            .collect();
        if names.is_empty() {
            return false;
        }
        let (run, name) = &names[below(rng, names.len() as u64) as usize];
        if let Some(bytes) = self.objects.get_mut(run).and_then(|objects| objects.get_mut(name)) {
            let mut flipped = bytes.to_vec();
            if !flipped.is_empty() {
                let position = below(rng, flipped.len() as u64) as usize;
                flipped[position] ^= 1 << below(rng, 8);
            }
            *bytes = flipped.into();
        }
        true
    }

    /// Everything, as a recovery sees it.
    pub(crate) fn load(&self) -> Vec<SavedRun> {
        let run = |(run, objects): (&String, &BTreeMap<String, Bytes>)| {
            let names: Vec<String> = objects.keys().cloned().collect();
            interpret(run, &names, |name| Ok(objects[name].clone())).0
        };
        self.objects.iter().filter_map(run).collect()
    }
}
