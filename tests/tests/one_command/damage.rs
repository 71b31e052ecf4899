//! A run's directory with a damaged object, or one that cannot be written for a while.

use std::os::unix::{
    fs::{MetadataExt as _, PermissionsExt as _, chown},
    process::CommandExt as _,
};

use crate::*;

/// So many rounds that the run is not over before its first checkpoint.
const LONG: [&str; 6] = ["--workers", "0", "--replicas", "1", "--set", "generations=50000"];
/// A user without rights. Root could write everywhere.
const NOBODY: u32 = 65534;

/// The content of a directory: all directories, starting with itself, and all files.
fn below(directory: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut directories, mut found) = (vec![directory.to_owned()], Vec::new());
    for name in files(directory) {
        let path = directory.join(name);
        match path.is_dir() {
            true => {
                let (more, inner) = below(&path);
                directories.extend(more);
                found.extend(inner);
            }
            false => found.push(path),
        }
    }
    (directories, found)
}

fn copy(from: &Path, to: &Path) {
    drop(fs::remove_dir_all(to));
    for file in below(from).1 {
        let target = to.join(file.strip_prefix(from).expect("the path is below the directory"));
        fs::create_dir_all(target.parent().expect("a directory")).expect("a directory");
        fs::copy(file, target).expect("a copy");
    }
}

fn damage(path: &Path, how: &str) {
    let mut bytes = fs::read(path).expect("an object");
    fs::remove_file(path).expect("an object");
    let middle = bytes.len() / 2;
    match how {
        "deleted" => return,
        "directory" => return fs::create_dir(path).expect("a directory"),
        "emptied" => bytes.clear(),
        "halved" => bytes.truncate(middle),
        _ => bytes[middle] ^= 4,
    }
    fs::write(path, bytes).expect("an object");
}

/// The rounds and the arms of a directory's results, as `evoxo report` gives them.
fn told(desk: &Desk, out: &str) -> (Value, Value) {
    let mut command = Command::new(program("evoxo"));
    let output = command.args(["report", out, "--json"]).current_dir(desk.path("")).output().expect("evoxo starts");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (result["rounds"].clone(), result["arms"].clone())
}

/// A run with one checkpoint is killed. Whatever single object is damaged after that, every round in the checkpoint is still
/// there.
#[test]
fn a_damaged_object_does_not_affect_a_killed_run() {
    let desk = Desk::new();
    let begin = |out: &str| {
        let log = fs::File::create(desk.path(&format!("{out}.log"))).expect("a file");
        let mut command = desk.command(&[&LONG[..], &["--out", out]].concat());
        command.stdout(Stdio::null()).stderr(log).spawn().expect("evoxo starts")
    };
    let mut child = begin("out");
    let at = |of: &str| objects_in(&desk.path("out/store/runs/table").join(of));
    wait_until("a checkpoint is there twice", || !at("checkpoint").is_empty() && !at("checkpoint-copy").is_empty());
    child.kill().expect("the process can be killed");
    child.wait().expect("the process has ended");
    let whole = told(&desk, "out");
    assert!(whole.0.as_u64() > Some(0), "{whole:?}");
    let objects = below(&desk.path("out/store/runs")).1;
    assert!(objects.len() >= 4, "there are two orders and two checkpoints: {objects:?}");
    for (object, how) in
        objects.iter().flat_map(|it| ["deleted", "emptied", "halved", "flipped", "directory"].map(|how| (it, how)))
    {
        copy(&desk.path("out"), &desk.path("bad"));
        let name = object.strip_prefix(desk.path("out")).expect("the path is below the directory");
        damage(&desk.path("bad").join(name), how);
        assert_eq!(told(&desk, "bad"), whole, "{} {how}", name.display());
    }
    // The command that continues the run rewrites the object, and says so once.
    let checkpoint =
        at("checkpoint")[0].strip_prefix(desk.path("out")).expect("the path is below the directory").to_owned();
    for how in ["deleted", "flipped"] {
        copy(&desk.path("out"), &desk.path("bad"));
        damage(&desk.path("bad").join(&checkpoint), how);
        let mut child = begin("bad");
        let log = || fs::read_to_string(desk.path("bad.log")).expect("a log");
        wait_until("it is written again", || log().contains("was rewritten from"));
        wait_until("it goes on", || told(&desk, "bad").0.as_u64() > whole.0.as_u64());
        child.kill().expect("the process can be killed");
        child.wait().expect("the process has ended");
        assert_eq!(log().matches("was rewritten from").count(), 1, "{}", log());
    }
}

#[test]
fn a_temporarily_unwritable_directory_is_reported() {
    for workers in ["0", "2"] {
        let desk = Desk::new();
        let log = fs::File::create(desk.path("log")).expect("a file");
        let mut command = desk.command(&["--workers", workers, "--replicas", "12", "--out", "out"]);
        command.stdout(Stdio::null()).stderr(log);
        if fs::metadata("/proc/self").expect("a process").uid() == 0 {
            chown(desk.path(""), Some(NOBODY), Some(NOBODY)).expect("root may change the owner");
            command.uid(NOBODY).gid(NOBODY).env("HOME", desk.path(""));
        }
        let mut child = command.spawn().expect("evoxo starts");
        let copies = desk.path("out/store/runs/table/order-copy");
        wait_until("the run has begun", || !objects_in(&copies).is_empty());
        let holds = if workers == "0" { vec![child.id()] } else { desk.processes("coordinator") };
        holds.iter().for_each(|pid| kill("-STOP", *pid));
        let mode = |mode: u32| {
            for directory in below(&desk.path("out/store")).0 {
                fs::set_permissions(directory, fs::Permissions::from_mode(mode)).expect("the directory is ours");
            }
        };
        mode(0o555);
        holds.iter().for_each(|pid| kill("-CONT", *pid));
        let log = || fs::read_to_string(desk.path("log")).expect("a log");
        wait_until("it says so", || log().contains("cannot be written in the store"));
        assert!(log().contains("Permission denied") && log().contains("check free space and permissions"), "{}", log());
        std::thread::sleep(Duration::from_secs(2));
        assert!(child.try_wait().expect("a process").is_none(), "it waits: {}", log());
        mode(0o755);
        assert!(child.wait().expect("the process ends").success(), "{}", log());
        assert_eq!(desk.result("out")["digest"], expected(12));
    }
}
