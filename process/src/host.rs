//! The name of this host, and how much memory a process may use on it.

use std::fs;

/// The name of this host.
#[must_use]
pub fn host_name() -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let name = host.as_deref().map(str::trim).filter(|name| !name.is_empty() && !name.contains(char::is_control));
    name.map_or_else(|| "host".to_owned(), |name| name.chars().take(64).collect())
}

/// The memory that this process may use, in bytes: the host's memory, or less if a control group or a resource limit says so.
/// `None` if the system does not say.
#[must_use]
pub fn memory_bytes() -> Option<u64> {
    let limits = [installed(), group_limit(), address_space_limit()];
    limits.into_iter().flatten().min()
}

/// The host's memory, from /proc/meminfo.
fn installed() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

/// The lowest memory limit of this process's control groups, of version 2 or else version 1.
fn group_limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_group = |line: &str| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        // The limits of all parent groups apply too. Inside a container their paths may not be visible.
        let mut least = None;
        let mut path = path.trim_end_matches('/');
        loop {
            let limit = fs::read_to_string(format!("{root}{path}/{file}")).ok();
            let limit = limit.and_then(|limit| limit.trim().parse::<u64>().ok());
            least = [least, limit].into_iter().flatten().min();
            match path.rsplit_once('/') {
                Some((above, _)) => path = above,
                None => return least,
            }
        }
    };
    groups.lines().filter_map(of_group).min()
}

/// How many files this process may have open at once, if the system says so.
#[must_use]
pub fn open_files() -> Option<u64> {
    rlimit::Resource::NOFILE.get().ok().map(|(_, hard)| hard)
}

fn address_space_limit() -> Option<u64> {
    let (soft, _) = rlimit::Resource::AS.get().ok()?;
    (soft != rlimit::INFINITY).then_some(soft)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_name_and_memory() {
        assert!(!host_name().is_empty());
        assert!(memory_bytes().is_some_and(|bytes| bytes > 1 << 20), "{:?}", memory_bytes());
    }
}
