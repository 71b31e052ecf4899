//! Limits on the worker's memory for an instance of a module.

use wasmi::{
    ResourceLimiter,
    errors::{MemoryError, TableError},
};
use wasmi_core::LimiterError as Denied;

/// The most bytes of a module's memory.
pub(super) const MEMORY_BYTES_MAX: usize = 64 << 20;
/// The most entries of a table.
const TABLE_ENTRIES_MAX: usize = 1 << 16;
/// The most tables.
const TABLES_MAX: usize = 16;

/// The limits of one instance, and whether it ran into one of them.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// The limit that the instance tried to exceed: a memory or table would have been too large.
    pub(super) exceeded: Option<&'static str>,
    /// The machine ran out of memory, which is not the module's fault.
    pub(super) starved: bool,
}

impl Limits {
    fn allow(&mut self, desired: usize, most: usize, what: &'static str) -> Result<bool, Denied> {
        if desired <= most {
            return Ok(true);
        }
        self.exceeded = Some(what);
        Err(Denied::ResourceLimiterDeniedAllocation)
    }

    fn fail(&mut self, starved: bool) -> Result<(), Denied> {
        self.starved |= starved;
        if starved { Err(Denied::ResourceLimiterDeniedAllocation) } else { Ok(()) }
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, Denied> {
        self.allow(desired, MEMORY_BYTES_MAX, "its memory would be larger than 64 MiB")
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool, Denied> {
        self.allow(desired, TABLE_ENTRIES_MAX, "its table would have more than 65536 entries")
    }

    fn memory_grow_failed(&mut self, error: &MemoryError) -> Result<(), Denied> {
        self.fail(matches!(error, MemoryError::OutOfSystemMemory))
    }

    fn table_grow_failed(&mut self, error: &TableError) -> Result<(), Denied> {
        self.fail(matches!(error, TableError::OutOfSystemMemory))
    }

    fn instances(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        TABLES_MAX
    }

    fn memories(&self) -> usize {
        1
    }
}
