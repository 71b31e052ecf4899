//! A coordinator process, and a worker that follows a script.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_common::task;
use evoxo_proto::v1::{
    self, FromWorker, RunState, from_worker::Message as Said, run_service_client::RunServiceClient,
    task_result::Outcome, to_worker::Message as Heard, worker_service_client::WorkerServiceClient,
};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming, transport::Channel};

/// What a test waits for at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A coordinator process; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: SocketAddr,
    log: PathBuf,
}

pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_evoxo-coordinator"))
}

impl Daemon {
    /// Starts one on a port that the system chooses.
    pub(crate) fn start(store: &Path) -> Self {
        Self::start_with(store, &["--checkpoint-interval", "50ms"])
    }

    pub(crate) fn start_with(store: &Path, more: &[&str]) -> Self {
        Self::run(program(), store, more)
    }

    /// Starts one whose files cannot grow beyond so many blocks of the shell's `ulimit -f`: for it the disk is full then.
    pub(crate) fn start_on_small_disk(store: &Path, blocks: u32) -> Self {
        Self::run(small_disk(blocks), store, &["--checkpoint-interval", "50ms"])
    }

    /// Starts one that may have so many files open, and no more.
    pub(crate) fn start_with_few_files(store: &Path, files: u32) -> Self {
        Self::run(limited(&format!("ulimit -n {files}")), store, &["--checkpoint-interval", "50ms"])
    }

    fn run(mut command: Command, store: &Path, more: &[&str]) -> Self {
        let log = store.with_extension(format!("log{}", std::process::id()));
        let errors = std::fs::File::options().create(true).append(true).open(&log).unwrap();
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--announce", "--exit-with-stdin", "--store"])
            .arg(store)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().parse().unwrap_or_else(|_| panic!("no address but {line:?}: {}", read(&log)));
        Self { child, address, log }
    }

    pub(crate) fn log(&self) -> String {
        read(&self.log)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What `evoxo run` does when it ends: its end of standard input is closed.
    pub(crate) fn close_stdin(&mut self) {
        drop(self.child.stdin.take());
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the coordinator does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) async fn people(&self) -> RunServiceClient<Channel> {
        RunServiceClient::connect(format!("http://{}", self.address)).await.unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// The program, with files that cannot grow beyond so many blocks.
pub(crate) fn small_disk(blocks: u32) -> Command {
    limited(&format!("trap '' XFSZ; ulimit -f {blocks}"))
}

/// The program, after a shell has done this.
fn limited(script: &str) -> Command {
    let mut command = Command::new("sh");
    let script = format!("{script}; exec \"$0\" \"$@\"");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_evoxo-coordinator")]);
    command
}

/// Runs the program to its end: its exit status and what it said on standard error.
pub(crate) fn ends(mut command: Command, arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

/// A directory for a store: a place in it, so that logs can lie beside.
pub(crate) fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    (directory, store)
}

/// An experiment of two replicas, each of so many rounds of four small tasks.
pub(crate) fn config(rounds: u32) -> String {
    format!(
        "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = {rounds}\ntasks = 4\npayload_bytes = 16\nreply_bytes = 16\n"
    )
}

pub(crate) fn hello() -> v1::Hello {
    v1::Hello {
        protocol: evoxo_proto::PROTOCOL,
        slots: 2,
        name: "script".into(),
        signature: task::signature(),
        build: "test".into(),
    }
}

/// A session that follows a script.
pub(crate) struct Session {
    pub(crate) said: mpsc::Sender<FromWorker>,
    pub(crate) heard: Streaming<v1::ToWorker>,
}

impl Session {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let mut client = WorkerServiceClient::connect(format!("http://{address}"))
            .await
            .unwrap()
            .max_decoding_message_size(evoxo_proto::MESSAGE_BYTES_MAX);
        let (said, words) = mpsc::channel(64);
        let heard = client.work(ReceiverStream::new(words)).await.unwrap().into_inner();
        Self { said, heard }
    }

    pub(crate) async fn say(&self, message: Said) {
        self.said.send(FromWorker { message: Some(message) }).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Result<Option<Heard>, Status> {
        let heard = tokio::time::timeout(PATIENCE, self.heard.message()).await.expect("the coordinator says nothing");
        Ok(heard?.and_then(|message| message.message))
    }

    /// Works until the coordinator ends the session or `tasks` are computed.
    pub(crate) async fn work(&mut self, mut tasks: usize) {
        self.say(Said::Hello(hello())).await;
        while tasks > 0 {
            match self.hear().await {
                Ok(Some(Heard::Assignment(assignment))) => {
                    tasks = tasks.saturating_sub(assignment.tasks.len());
                    let results = assignment.tasks.iter().map(|task| result(assignment.id, task)).collect();
                    self.say(Said::Outputs(v1::Outputs { results })).await;
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }
}

pub(crate) fn result(assignment: u64, task: &v1::AssignedTask) -> v1::TaskResult {
    let output: Bytes = task::run_encoded(&task.task).unwrap();
    v1::TaskResult { hash: task.hash.clone(), outcome: Some(Outcome::Output(output)), elapsed_us: 10, assignment }
}

/// A worker that works in the background.
pub(crate) fn spawn_worker(address: SocketAddr) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move { Session::open(address).await.work(usize::MAX).await })
}

pub(crate) async fn submit(
    client: &mut RunServiceClient<Channel>,
    name: &str,
    config: &str,
) -> Result<v1::SubmitResponse, Status> {
    let request = v1::SubmitRequest { name: name.into(), config: config.into() };
    client.submit(request).await.map(tonic::Response::into_inner)
}

pub(crate) async fn get(client: &mut RunServiceClient<Channel>, name: &str) -> v1::Run {
    client.get(v1::GetRequest { name: name.into() }).await.unwrap().into_inner()
}

/// Waits until a run is in a state.
pub(crate) async fn until(client: &mut RunServiceClient<Channel>, name: &str, state: RunState) -> v1::Run {
    let start = Instant::now();
    loop {
        let run = get(client, name).await;
        if run.state() == state {
            return run;
        }
        assert!(start.elapsed() < PATIENCE, "run {name} is not {state:?} but {:?}", run.state());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
