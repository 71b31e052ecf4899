//! Coordinators and workers as processes on loopback, with a store and logs in their own directory.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::{
    programs::program,
    s3::{BUCKET, S3},
};

/// How long anything may take before a test fails. It is long, because machines are slow when all tests run at once.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Opens a port of this machine. `carry` forwards or ends each connection to it.
///
/// # Panics
/// If there is no port.
pub fn relay<F>(carry: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind(ANY).expect("a port");
    listener.set_nonblocking(true).expect("a socket for a runtime");
    let address = listener.local_addr().expect("the socket is bound");
    tokio::spawn(async move {
        let listener = TcpListener::from_std(listener).expect("a socket");
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(carry(near));
        }
    });
    address
}

/// Any free port of this machine.
const ANY: &str = "127.0.0.1:0";

/// A directory for a store and for logs, removed at the end. If a test fails, the logs are printed.
pub struct Site {
    directory: TempDir,
    /// The program to run as coordinator and worker, if not evoxo's own programs.
    tool: Option<PathBuf>,
    /// Variables in the environment of the site's coordinators and workers.
    variables: Vec<(String, String)>,
    /// Sockets that reserve the ports of the site's coordinators. While a coordinator is dead that will listen there again,
    /// the system gives its port to no connection of another test.
    kept: Mutex<Vec<TcpSocket>>,
}

impl Site {
    /// An empty site.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        Self::with(None)
    }

    /// An empty site that runs this tool as coordinators and workers: a program whose `main` is `evoxo::main`.
    ///
    /// # Panics
    /// If the directory cannot be created.
    #[must_use]
    pub fn of_tool(tool: impl Into<PathBuf>) -> Self {
        Self::with(Some(tool.into()))
    }

    fn with(tool: Option<PathBuf>) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { directory, tool, variables: Vec::new(), kept: Mutex::default() }
    }

    /// Adds this variable to the environment of the site's coordinators and workers.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// The command of a coordinator or a worker.
    fn command(&self, role: &str) -> Command {
        let mut command = match &self.tool {
            None => Command::new(program(&format!("evoxo-{role}"))),
            Some(tool) => Command::new(tool),
        };
        command.args(self.tool.as_ref().map(|_| role)).envs(self.variables.clone());
        command
    }

    /// A path in the directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A coordinator on any port, with further arguments.
    #[must_use]
    pub fn coordinator(&self, arguments: &[&str]) -> Coordinator {
        self.coordinator_on(ANY, arguments)
    }

    /// An address of this machine where nobody listens, reserved for programs of this site.
    fn free_address(&self) -> String {
        let socket = TcpSocket::new_v4().expect("a socket");
        // A listener sets the same option, so both can have the port, because this socket never listens.
        socket.set_reuseaddr(true).expect("a socket can share its address");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = socket.local_addr().expect("an address").to_string();
        self.kept.lock().expect("no thread panics while it holds the lock").push(socket);
        address
    }

    /// A coordinator on this address (`127.0.0.1:0` is any free port), with this site's store.
    #[must_use]
    pub fn coordinator_on(&self, listen: &str, arguments: &[&str]) -> Coordinator {
        self.coordinator_in(self.command("coordinator"), listen, arguments)
    }

    /// A coordinator started by a shell that first runs `script`, for example `ulimit -n 96`.
    #[must_use]
    pub fn limited_coordinator(&self, script: &str, arguments: &[&str]) -> Coordinator {
        self.coordinator_in(limited("evoxo-coordinator", script), ANY, arguments)
    }

    /// A coordinator on this address whose store is a bucket of this server.
    #[must_use]
    pub fn coordinator_of_bucket(&self, s3: &S3, listen: &str, arguments: &[&str]) -> Coordinator {
        let mut command = self.command("coordinator");
        command.envs(s3.variables());
        let store = format!("s3://{BUCKET}/site");
        self.coordinator_in(command, listen, &[&["--store", &store], arguments].concat())
    }

    /// Starts a coordinator again at the address of a killed one. It may fail to start.
    #[must_use]
    pub fn coordinator_of_bucket_again(&self, s3: &S3, killed: &Coordinator) -> Process {
        let mut command = self.command("coordinator");
        let (store, listen) = (format!("s3://{BUCKET}/site"), killed.address.to_string());
        command.envs(s3.variables()).args(["--listen", &listen, "--store", &store, "--checkpoint-interval", "0.5"]);
        self.start("coordinator", &mut command)
    }

    /// A coordinator started by this command.
    ///
    /// # Panics
    /// If it does not announce its address.
    #[must_use]
    fn coordinator_in(&self, mut command: Command, listen: &str, arguments: &[&str]) -> Coordinator {
        let listen = if listen == ANY { self.free_address() } else { listen.to_owned() };
        command.args(["--listen", &listen, "--announce"]).args(arguments).stdout(Stdio::piped());
        if !arguments.contains(&"--store") {
            command.arg("--store").arg(self.path("store"));
        }
        if !arguments.contains(&"--checkpoint-interval") {
            command.args(["--checkpoint-interval", "0.05"]);
        }
        let mut process = self.start("coordinator", &mut command);
        let stdout = process.child.stdout.take().expect("the output is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("text");
        let address = line.trim().parse();
        let address = address.unwrap_or_else(|_| panic!("no address was announced:\n{}", process.log()));
        Coordinator { process, address }
    }

    /// A worker with one slot for this coordinator, with further arguments.
    #[must_use]
    pub fn worker(&self, coordinator: SocketAddr, arguments: &[&str]) -> Process {
        let mut command = self.command("worker");
        command.args(["--coordinator", &coordinator.to_string(), "--slots", "1"]).args(arguments);
        self.start("worker", &mut command)
    }

    /// One of evoxo's programs with these arguments, run in the site's directory.
    #[must_use]
    pub fn program(&self, name: &str, arguments: &[&str]) -> Process {
        let mut command = Command::new(program(name));
        command.args(arguments).current_dir(self.directory.path());
        self.start(name, &mut command)
    }

    /// Starts a program whose log is a file in the site's directory.
    ///
    /// # Panics
    /// If the program cannot be started.
    pub fn start(&self, name: &str, command: &mut Command) -> Process {
        let log = (0..).map(|number| self.path(&format!("{name}-{number}.log"))).find(|path| !path.exists());
        let log = log.expect("numbers do not end");
        let stderr = File::create(&log).expect("a file");
        let child = command.stdin(Stdio::null()).stderr(stderr).spawn();
        Process { child: child.unwrap_or_else(|error| panic!("{command:?}: {error}")), log }
    }

    /// Objects of one kind (`checkpoint`, `finished`, ...) of a run in the store, by name.
    #[must_use]
    pub fn objects(&self, run: &str, kind: &str) -> Vec<PathBuf> {
        objects_in(&self.path("store").join("runs").join(run).join(kind))
    }
}

/// The objects of a store in this directory, by name; empty if there is no such directory.
#[must_use]
pub fn objects_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    // A file that is being written, or whose writer was killed, is not an object.
    paths.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().contains('#')));
    paths.sort();
    paths
}

impl Drop for Site {
    #[expect(clippy::print_stdout, reason = "the test's own output, shown if it fails")]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for entry in fs::read_dir(self.directory.path()).into_iter().flatten().flatten() {
            if let Ok(text) = fs::read_to_string(entry.path()) {
                println!("--- {}\n{text}", entry.path().display());
            }
        }
    }
}

/// The program, started by a shell that first runs `script`.
#[must_use]
pub fn limited(name: &str, script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script}; exec \"$0\" \"$@\"")]).arg(program(name));
    command
}

/// A running program; killed when dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// The program's standard error so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The process's number in the system.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: TERM, STOP, CONT.
    ///
    /// # Panics
    /// If the process is gone.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "the signal {name} reaches the process");
    }

    /// Does what the terminal does at Ctrl-C: sends SIGINT to the process and all of its group, which it must lead.
    ///
    /// # Panics
    /// If it does not lead a group.
    pub fn interrupt_group(&self) {
        let status = Command::new("kill").args(["-INT", "--", &format!("-{}", self.child.id())]).status();
        assert!(status.is_ok_and(|status| status.success()), "there is such a group");
    }

    /// A value of the process's memory from Linux, in bytes: `VmRSS` now, `VmHWM` the maximum so far. `None` on other
    /// systems.
    #[must_use]
    pub fn memory_bytes(&self, figure: &str) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Processor time of all the process's threads so far, on Linux.
    #[must_use]
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // The name, in parentheses, may contain spaces. User and system time are the 12th and 13th values after it.
        let (_, figures) = stat.rsplit_once(')')?;
        let ticks = figures.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().ok());
        // A tick is 10 ms on Linux.
        ticks.sum::<Option<u64>>().map(|ticks| Duration::from_millis(10 * ticks))
    }

    /// Whether the process has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_some())
    }

    /// Waits until the process ends.
    ///
    /// # Panics
    /// If it does not end in time.
    pub async fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.log());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A running coordinator.
pub struct Coordinator {
    /// The coordinator's process.
    pub process: Process,
    /// The coordinator's address.
    pub address: SocketAddr,
}
