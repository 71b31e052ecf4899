//! `evoxo-coordinator init`: creates a cluster's access directory.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, chown},
    path::Path,
};

use anyhow::{Context as _, bail};
use evoxo_access::{AccessFile, Authority, Id, Identity, Role, create_directory, now_s, write_private};

use super::{PERSON_LIFE_S, SERVER_FILE};

/// The operator's access file.
const OPERATOR_FILE: &str = "operator.access";

/// Creates the directory. If it is an access directory already, only adds an access file for a new operator, and a new
/// certificate of the coordinator if there are names. Returns the text to show.
///
/// # Errors
/// If the directory has only part of an authority, or no authority but other files; if a file cannot be written, or a name
/// cannot be in a certificate.
pub(crate) fn init(directory: &Path, names: &[String]) -> anyhow::Result<String> {
    create_directory(directory)?;
    let files = Authority::FILES.map(|name| directory.join(name).exists());
    let (authority, is_new) = match files {
        [true, true] => (Authority::load(directory)?, false),
        // An `init` that was killed may have left only the key.
        [false, _] => {
            refuse_others(directory)?;
            (Authority::create(directory, now_s())?, true)
        }
        [true, false] => bail!(
            "{} has an authority's certificate but not its key: restore ca.key from a backup, or give a new directory",
            directory.display()
        ),
    };
    let server = directory.join(SERVER_FILE);
    if is_new || !names.is_empty() || !server.exists() {
        write_private(&server, authority.server(names, now_s())?.as_bytes())?;
    }
    let identity = Identity { id: Id::draw(), role: Role::Operator };
    let operator = directory.join(OPERATOR_FILE);
    AccessFile::made_by(&authority, &identity, now_s(), PERSON_LIFE_S)?.store(&operator)?;
    for name in Authority::FILES.into_iter().chain([SERVER_FILE, OPERATOR_FILE]) {
        give_to_owner(directory, name)?;
    }
    let shown = directory.canonicalize().with_context(|| format!("cannot find {}", directory.display()))?;
    let shown = shown.display();
    let made = if is_new { "a new cluster" } else { "a new access file for an operator; the cluster is unchanged" };
    Ok(format!(
        "made {made}, in {shown}. Keep that directory secret: it has the key that admits others\nnext, start the \
         coordinator and create a token for the workers:\n  evoxo-coordinator --listen 0.0.0.0:7600 --access {shown}\n  \
         export EVOXO_ACCESS={shown}/{OPERATOR_FILE}\n  evoxo token create --role worker --uses 20"
    ))
}

/// Refuses a directory that is used for something else, because files of the same names would be replaced.
fn refuse_others(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    for entry in fs::read_dir(directory).with_context(|| format!("cannot read the directory {shown}"))? {
        let name = entry.with_context(|| format!("cannot read the directory {shown}"))?.file_name();
        let name = name.to_string_lossy();
        // A new volume has these, or an `init` that was killed left them.
        if name != "lost+found" && !name.starts_with('.') && !Authority::FILES.contains(&&*name) {
            bail!("{shown} has other files, such as {name}: give an empty or a new directory");
        }
    }
    Ok(())
}

/// Gives a file that root wrote to the owner of the directory: a service that runs as another user must read it.
fn give_to_owner(directory: &Path, name: &str) -> anyhow::Result<()> {
    let path = directory.join(name);
    let given = fs::metadata(directory).and_then(|owner| match fs::metadata(&path)?.uid() {
        0 if owner.uid() != 0 => chown(&path, Some(owner.uid()), Some(owner.gid())),
        _ => Ok(()),
    });
    given.with_context(|| format!("cannot give {} to the owner of its directory", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This also holds if root makes the files for a service that runs as another user, and repeats it later.
    #[test]
    fn new_files_belong_to_the_owner_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        // Without root the directory stays with the user who runs the test, and so do the files.
        let _ = chown(directory.path(), Some(65534), Some(65534));
        let owner = |path: &Path| fs::metadata(path).map(|data| (data.uid(), data.gid())).unwrap();
        for names in [&[][..], &["lab1".to_owned()]] {
            init(directory.path(), names).unwrap();
            let files = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
            let owners: Vec<_> = files.map(|path| owner(&path).0).collect();
            assert_eq!(owners, [owner(directory.path()).0; 4]);
        }
    }

    #[test]
    fn a_directory_with_other_files_is_left_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let server = directory.path().join(SERVER_FILE);
        fs::write(&server, "somebody's").unwrap();
        let why = init(directory.path(), &[]).unwrap_err().to_string();
        assert!(why.contains("has other files, such as server.pem: give an empty"), "{why}");
        assert_eq!(
            (fs::read_dir(directory.path()).unwrap().count(), &*fs::read(&server).unwrap()),
            (1, &b"somebody's"[..])
        );
        // An `init` that was killed leaves this behind.
        fs::rename(&server, directory.path().join("ca.key")).unwrap();
        init(directory.path(), &[]).unwrap();
    }

    #[test]
    fn an_impossible_host_name_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["", "bad name!", "lab1:7600"] {
            let why = init(directory.path(), &[name.to_owned()]).unwrap_err().to_string();
            assert!(why.contains("is not a host name or an IP address"), "{why}");
        }
        init(directory.path(), &["lab1.example".into(), "10.0.0.5".into(), "fe80::1".into()]).unwrap();
    }
}
