//! When objects of a run were written, by the clock of the store.

use futures_util::StreamExt as _;
use object_store::{ObjectStore as _, path::Path};

use super::{Reader, answer::cause};

/// The most objects of a directory whose dates are read. Among more objects, the first and the last may not be found.
const OBJECTS_MAX: usize = 10_000;

impl Reader {
    /// When the first and when the last of the objects in a directory of a run were written, in seconds since 1970; `None` if
    /// the directory is empty.
    ///
    /// # Errors
    /// A sentence that names the directory.
    pub(crate) async fn dates(&self, run: &str, directory: &str) -> Result<Option<(u64, u64)>, String> {
        let name = format!("runs/{run}/{directory}");
        let mut objects = self.objects.list(Some(&Path::from(name.as_str()))).take(OBJECTS_MAX);
        let mut dates: Option<(u64, u64)> = None;
        while let Some(object) = objects.next().await {
            let object = object
                .map_err(|error| format!("{name} cannot be listed in the store {}: {}", self.shown, cause(&error)))?;
            let date = u64::try_from(object.last_modified.timestamp()).unwrap_or_default();
            dates = Some(dates.map_or((date, date), |(first, last)| (first.min(date), last.max(date))));
        }
        Ok(dates)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::{ObjectStore, ObjectStoreExt as _, memory::InMemory};

    use super::*;
    use crate::store::Store;

    #[test]
    fn dates_are_those_of_the_objects() {
        let memory: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let reader = Store::over(Arc::clone(&memory), "memory", evoxo_experiments::registry()).reader();
        let wait = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let begun = evoxo_access::now_s();
        for name in ["runs/one/order/1", "runs/one/order/2", "runs/other/finished/1"] {
            wait.block_on(memory.put(&Path::from(name), "x".into())).unwrap();
        }
        let (first, last) = wait.block_on(reader.dates("one", "order")).unwrap().unwrap();
        assert!(begun <= first && first <= last && last <= evoxo_access::now_s(), "{first} {last}");
        assert_eq!(wait.block_on(reader.dates("one", "finished")), Ok(None));
    }
}
