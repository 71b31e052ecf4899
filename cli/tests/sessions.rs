//! The real program over real sockets, with a coordinator played by the test.

use std::{
    io::{ErrorKind, Read as _},
    net::SocketAddr,
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use bytes::Bytes;
use evoxo_common::{
    digest::Digest,
    task::{Encoded, Encoder, NoPrograms, Task},
};
use evoxo_experiments::{
    dispatch::{
        Echo,
        messages::{EchoOutput, EchoTask},
    },
    registry,
};
use evoxo_proto::{
    LEADER_HEADER, Led, MESSAGE_BYTES_MAX, PROTOCOL,
    v1::{
        Accepted, AssignedTask, Assignment, Close, CloseKind, FromWorker, Hello, TaskResult, ToWorker, Welcome,
        from_worker,
        task_result::Outcome,
        to_worker,
        worker_service_server::{WorkerService, WorkerServiceServer},
    },
};
use prost::Message as _;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming, transport::Server};

const PATIENCE: Duration = Duration::from_secs(30);

/// One session, as the coordinator sees it.
struct Session {
    incoming: Streaming<FromWorker>,
    outgoing: mpsc::Sender<Result<ToWorker, Status>>,
}

impl Session {
    async fn sends(&self, message: to_worker::Message) {
        self.outgoing.send(Ok(ToWorker { message: Some(message) })).await.expect("the worker listens");
    }

    async fn welcomes(&mut self) -> Hello {
        let Some(from_worker::Message::Hello(hello)) = self.receives().await else { panic!("no hello") };
        self.sends(to_worker::Message::Welcome(Welcome { session: 7, heartbeat_interval_ms: 60_000 })).await;
        hello
    }

    async fn assigns(&self, id: u64, tasks: &[Bytes]) {
        let task = |task: &Bytes| AssignedTask { hash: hash(task), task: task.clone(), shared: Bytes::new() };
        let tasks = tasks.iter().map(task).collect();
        self.sends(to_worker::Message::Assignment(Assignment { id, tasks, shared: Vec::new() })).await;
    }

    async fn accepts(&self, results: &[TaskResult]) {
        let hashes = results.iter().map(|result| result.hash.clone()).collect();
        self.sends(to_worker::Message::Accepted(Accepted { hashes })).await;
    }

    /// The next message; `None` at the end of the stream.
    async fn receives(&mut self) -> Option<from_worker::Message> {
        let message = timeout(PATIENCE, self.incoming.message()).await.expect("the worker sends something");
        message.expect("the stream is whole").map(|message| message.message.expect("a message of a known kind"))
    }

    /// The next `count` results.
    async fn results(&mut self, count: usize) -> Vec<TaskResult> {
        let mut results = Vec::new();
        while results.len() < count {
            match self.receives().await {
                Some(from_worker::Message::Outputs(outputs)) => results.extend(outputs.results),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(results.len(), count);
        results
    }
}

/// A coordinator that passes its sessions to the test.
struct Coordinator {
    address: SocketAddr,
    sessions: mpsc::Receiver<Session>,
    server: JoinHandle<()>,
}

/// The service, with the epoch that it reports.
struct Service(mpsc::Sender<Session>, Option<Led>);

#[tonic::async_trait]
impl WorkerService for Service {
    type WorkStream = ReceiverStream<Result<ToWorker, Status>>;

    async fn work(&self, request: Request<Streaming<FromWorker>>) -> Result<Response<Self::WorkStream>, Status> {
        let (say, said) = mpsc::channel(8);
        let session = Session { incoming: request.into_inner(), outgoing: say };
        self.0.send(session).await.map_err(|_| Status::unavailable("the test is over"))?;
        let mut response = Response::new(ReceiverStream::new(said));
        if let Some(led) = &self.1 {
            response.metadata_mut().insert(LEADER_HEADER, led.to_string().parse().expect("plain letters"));
        }
        Ok(response)
    }
}

impl Coordinator {
    async fn start(address: SocketAddr) -> Self {
        Self::leading(address, None).await
    }

    async fn leading(address: SocketAddr, led: Option<Led>) -> Self {
        let listener = listen(address).await;
        let address = listener.local_addr().expect("an address");
        let (sender, sessions) = mpsc::channel(1);
        let service = WorkerServiceServer::new(Service(sender, led))
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let serve = Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener));
        let server = tokio::spawn(async move { serve.await.expect("the server serves") });
        Self { address, sessions, server }
    }

    /// Stops the coordinator. Its address is free afterwards.
    async fn end(self) {
        self.server.abort();
        drop(self.server.await);
    }

    async fn on_any_port() -> Self {
        Self::start(([127, 0, 0, 1], 0).into()).await
    }

    async fn session(&mut self) -> Session {
        timeout(PATIENCE, self.sessions.recv()).await.expect("a worker connects").expect("the server serves")
    }

    fn worker(&self, arguments: &[&str]) -> Worker {
        Worker::start(&[&["--coordinator", &self.address.to_string()], arguments].concat())
    }
}

/// Listens on an address. The address of a coordinator that has just ended may still be in use: a process that another test
/// starts holds all sockets of this one for a moment, until it executes its program.
async fn listen(address: SocketAddr) -> TcpListener {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Err(error) if error.kind() == ErrorKind::AddrInUse && begun.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(5)).await;
            }
            listener => return listener.expect("a free port"),
        }
    }
}

/// The process; killed when dropped.
struct Worker(Child);

impl Worker {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evoxo-worker"));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().expect("the program starts"))
    }

    fn terminate(&self) {
        let killed = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
    }

    /// Waits for a line of the log, and returns it.
    fn line(&mut self) -> String {
        let (error, mut line) = (self.0.stderr.as_mut().expect("piped"), Vec::new());
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            error.read_exact(&mut byte).expect("another line");
            line.extend(byte);
        }
        String::from_utf8(line).expect("text")
    }

    /// Waits for the end. Returns the status, and what was written to standard output and standard error, except lines
    /// already read.
    async fn end(mut self) -> (ExitStatus, String, String) {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                break status;
            }
            assert!(start.elapsed() < PATIENCE, "the worker does not end");
            sleep(Duration::from_millis(5)).await;
        };
        let (mut out, mut error) = (String::new(), String::new());
        self.0.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
        self.0.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
        (status, out, error)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn echo_task(payload: impl Into<Bytes>, reply_bytes: u32) -> Task {
    Task::of::<Echo>(&EchoTask { payload: payload.into(), reply_bytes })
}

fn encoded(task: Task) -> Encoded {
    Encoder::default().encode(task)
}

fn echo(payload: impl Into<Bytes>, reply_bytes: u32) -> Bytes {
    encoded(echo_task(payload, reply_bytes)).whole()
}

fn hash(task: &Bytes) -> Bytes {
    Bytes::copy_from_slice(&Digest::of(task).0)
}

fn payload(result: &TaskResult) -> Bytes {
    let Some(Outcome::Output(bytes)) = &result.outcome else { panic!("{result:?}") };
    EchoOutput::decode(bytes.clone()).expect("an output").payload
}

#[tokio::test]
async fn results_outlive_a_session_and_a_drain_is_clean() {
    let mut coordinator = Coordinator::on_any_port().await;
    let worker = coordinator.worker(&["--slots", "2", "--name", "lab7"]);
    let mut session = coordinator.session().await;
    let hello = session.welcomes().await;
    assert_eq!((hello.protocol, hello.slots, hello.name.as_str()), (PROTOCOL, 2, "lab7"));
    assert_eq!(hello.kinds, registry().signatures());
    let (good, bad) = (echo("evolution", 4), Bytes::from_static(b"\xff"));
    session.assigns(1, &[good.clone(), bad.clone()]).await;
    let results = session.results(2).await;
    assert_eq!((&results[0].hash, results[0].assignment), (&hash(&good), 1));
    assert_eq!(payload(&results[0]), "evol");
    assert!(matches!(&results[1].outcome, Some(Outcome::Failure(sentence)) if sentence.contains("not a task")));
    session.accepts(&results[1..]).await;
    drop(session);

    let mut session = coordinator.session().await;
    session.welcomes().await;
    let offers = session.results(1).await;
    assert_eq!((&offers[0].hash, offers[0].assignment), (&hash(&good), 0));
    worker.terminate();
    assert!(matches!(session.receives().await, Some(from_worker::Message::Drain(_))));
    session.accepts(&offers).await;
    assert_eq!(session.receives().await, None, "the stream ends properly");
    drop(session);
    let (status, out, error) = worker.end().await;
    assert_eq!((status.code(), out.as_str()), (Some(0), ""));
    assert_eq!(
        error.lines().count(),
        6,
        "connected, a failed task, lost, connected, shutting down, shut down: {error}"
    );
    assert!(error.contains("WARN lost the coordinator: it ended the stream; next try in 0."), "{error}");
}

#[tokio::test]
async fn a_worker_waits_for_a_coordinator_that_is_late_or_restarts() {
    let mut coordinator = Coordinator::on_any_port().await;
    let address = coordinator.address;
    coordinator.server.abort();
    assert!(coordinator.server.await.is_err_and(|error| error.is_cancelled()));
    let mut worker = Worker::start(&["--coordinator", &format!("http://{address}"), "--slots", "1"]);
    let late = worker.line();
    assert!(late.contains(&format!("no session with the coordinator: cannot reach {address}: ")), "{late}");
    for _ in 0..2 {
        coordinator = Coordinator::start(address).await;
        let mut session = coordinator.session().await;
        session.welcomes().await;
        session.assigns(1, &[echo("x", 1)]).await;
        let results = session.results(1).await;
        session.accepts(&results).await;
        coordinator.server.abort();
        assert!(coordinator.server.await.is_err_and(|error| error.is_cancelled()));
    }
    worker.terminate();
    let (status, _, error) = worker.end().await;
    assert_eq!(status.code(), Some(0), "{error}");
}

#[tokio::test]
async fn a_rejected_worker_says_why_and_exits_with_its_own_status() {
    let mut coordinator = Coordinator::on_any_port().await;
    let worker = coordinator.worker(&[]);
    let mut session = coordinator.session().await;
    session.receives().await;
    let reason = "it computes something else for table_score".to_owned();
    session
        .sends(to_worker::Message::Close(Close { kind: CloseKind::Refused.into(), reason, retry_after_ms: 0 }))
        .await;
    drop(session);
    let (status, _, error) = worker.end().await;
    assert_eq!(status.code(), Some(3));
    assert!(error.contains("refused this worker: it computes something else for table_score"), "{error}");
}

/// If a failure would be the same on every attempt, the worker does not retry forever.
#[tokio::test]
async fn a_server_that_is_not_a_coordinator_is_rejected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (_, health) = tonic_health::server::health_reporter();
    let incoming = TcpListenerStream::new(listener);
    let server = tokio::spawn(Server::builder().add_service(health).serve_with_incoming(incoming));
    let (status, _, error) = Worker::start(&["--coordinator", &address.to_string()]).end().await;
    server.abort();
    assert_eq!(status.code(), Some(3), "{error}");
    assert!(error.contains("this worker was refused: there is no evoxo coordinator at this address"), "{error}");
}

#[tokio::test]
async fn messages_of_many_mebibytes_are_sent_both_ways() {
    let mut coordinator = Coordinator::on_any_port().await;
    let _worker = coordinator.worker(&["--slots", "1"]);
    let mut session = coordinator.session().await;
    session.welcomes().await;
    let tasks: Vec<_> = (0..14_u8).map(|number| echo(vec![number; 1 << 20], 1 << 20)).collect();
    session.assigns(1, &tasks).await;
    let results = session.results(14).await;
    for (number, result) in results.iter().enumerate() {
        assert_eq!(payload(result), vec![number as u8; 1 << 20]);
    }
}

#[tokio::test]
async fn a_worker_can_end_with_its_standard_input() {
    let mut coordinator = Coordinator::on_any_port().await;
    let mut worker = coordinator.worker(&["--exit-with-stdin"]);
    let mut session = coordinator.session().await;
    session.welcomes().await;
    drop(worker.0.stdin.take());
    assert_eq!(worker.end().await.0.code(), Some(0));
    assert!(timeout(PATIENCE, session.incoming.message()).await.is_ok(), "the coordinator notices");
}

#[tokio::test]
async fn an_idle_worker_shuts_down_even_without_a_coordinator() {
    let worker = Worker::start(&["--coordinator", "127.0.0.1:1", "--idle-timeout", "300ms"]);
    let (status, _, error) = worker.end().await;
    assert_eq!(status.code(), Some(0));
    assert!(error.contains("shut down (no task for 0.3 s)"), "{error}");
}

#[tokio::test]
async fn wrong_usage_is_reported_and_exits_with_2() {
    for (arguments, sentence) in [
        (vec!["--slots", "0"], "give a whole number from 1 to 1024"),
        (vec!["--slots", "many"], "give a whole number from 1 to 1024"),
        (vec!["--coordinator", "https://lab7"], "only http:// is understood"),
        (vec!["--idle-timeout", "soon"], "give a time like 90s"),
        (vec!["--simd", "mmx"], "possible values: auto, avx2, baseline"),
        (vec!["--slot", "1"], "'--slots'"),
        (vec!["run-task"], "<FILE>"),
    ] {
        let (status, out, error) = Worker::start(&arguments).end().await;
        assert_eq!((status.code(), out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(error.starts_with("error: ") && error.contains(sentence), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn a_saved_task_can_be_computed_from_its_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("a.task");
    let run = async |bytes: Option<&[u8]>| {
        match bytes {
            Some(bytes) => std::fs::write(&file, bytes).expect("a file"),
            None => std::fs::remove_file(&file).expect("a file"),
        }
        Worker::start(&["run-task", file.to_str().expect("a path of text")]).end().await
    };
    // The task's hash names its poison file. The hash covers the shared bytes.
    for task in [echo_task("evolution", 4), echo_task("evo", 9).sharing(Bytes::from_static(b"lution"))] {
        let task = encoded(task);
        let (status, out, _) = run(Some(&task.whole())).await;
        let output = registry().run(&task, &mut NoPrograms).expect("an output");
        assert_eq!(status.code(), Some(0));
        let bytes = task.whole().len();
        assert!(out.contains(&format!("task    dispatch/echo of {bytes} bytes, {}\n", task.hash)), "{out}");
        assert!(out.contains(&format!("output  {} bytes, SHA-256 {}\n", output.len(), Digest::of(&output))), "{out}");
    }
    for (bytes, sentence) in [
        (Some(&[0xff][..]), "a.task is not a saved task"),
        (Some(&[][..]), "this build knows no task"),
        (Some(&vec![0; 9 << 20][..]), "it has 9437184 bytes"),
        (None, "cannot read the task"),
    ] {
        let (status, _, error) = run(bytes).await;
        assert_eq!(status.code(), Some(1));
        assert!(error.starts_with("error: ") && error.contains(sentence) && error.lines().count() == 1, "{error}");
    }
}

#[tokio::test]
async fn the_version_names_the_commit() {
    let (status, out, _) = Worker::start(&["--version"]).end().await;
    assert_eq!(status.code(), Some(0));
    assert!(out.starts_with(concat!("evoxo-worker ", env!("CARGO_PKG_VERSION"), " (")), "{out}");
}

/// A coordinator was stopped and does not know that another one has taken over. A worker that knows of the other one does not
/// use it.
#[tokio::test]
async fn a_worker_uses_no_lower_epoch_than_it_has_seen() {
    let led = |epoch| Some(Led::new([7; 16], epoch));
    let free = TcpListener::bind("127.0.0.1:0").await.expect("a free port").local_addr().expect("an address");
    let mut new = Coordinator::leading(([127, 0, 0, 1], 0).into(), led(7)).await;
    let address = new.address;
    let _worker = Worker::start(&["--coordinator", &format!("{free},{address}")]);
    new.session().await.welcomes().await;
    new.end().await;
    let mut old = Coordinator::leading(free, led(6)).await;
    let mut refused = old.session().await;
    let said = timeout(PATIENCE, refused.incoming.message()).await.expect("the worker decides");
    assert!(!matches!(said, Ok(Some(_))), "the worker greets a coordinator of an older epoch: {said:?}");
    // Another address of the same cluster works as well as the first.
    old.end().await;
    Coordinator::leading(free, led(8)).await.session().await.welcomes().await;
}
