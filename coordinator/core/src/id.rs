//! The ids by which the coordinator's parts refer to sessions, requests, writes, threads and tasks.

/// A stream of a worker; chosen by the shell, unique while the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u64);

impl SessionId {
    /// No session: what the coordinator has computed itself came in it.
    pub(crate) const OWN: Self = Self(u64::MAX);
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A person's request; chosen by the shell, returned with the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// A write to the store; returned with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId(pub u64);

/// The thread that has a run's replicas. A run that is unloaded and loaded again gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadId(pub u64);

/// A task, numbered in the order of planning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskId(pub(crate) u64);

impl TaskId {
    /// The id of no open task.
    pub(crate) const NONE: Self = Self(0);
}
