//! The ids by which the parts of the coordinator refer to sessions, requests, writes, threads and tasks.

/// A worker's stream. The shell chooses the id; it is unique while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl SessionId {
    /// The session of outputs that the coordinator computed itself. It is not a worker's session.
    pub(crate) const OWN: Self = Self(u64::MAX);
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A client's request. The shell chooses the id and gets it back with the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A write to the store. The id comes back with the outcome of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// The thread that holds the replicas of a run. A run that is unloaded and loaded again gets another id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId(pub u64);

/// A task. Ids follow the order of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId(pub(crate) u64);

impl TaskId {
    /// An id that no open task has.
    pub(crate) const NONE: Self = Self(0);
}
