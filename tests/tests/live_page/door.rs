//! The page of a coordinator with an access directory: over TLS, for people who log in, with the rights of their roles.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use evoxo_access::Role;
use evoxo_proto::v1::RunState;
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Site},
    programs::program,
    secure::Secure,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject as _},
    },
};

use super::http::{Answer, exchange};
use crate::RUN;

/// A cluster whose coordinator shows its page on a separate port, as `localhost`.
struct Lab<'a> {
    secure: Secure<'a>,
    coordinator: Coordinator,
    page: SocketAddr,
}

impl<'a> Lab<'a> {
    fn new(site: &'a Site) -> Self {
        Self::with(site, "12h")
    }

    /// A cluster in which a login lasts this long.
    fn with(site: &'a Site, life: &str) -> Self {
        let secure = Secure::init(site, "access");
        let named = std::process::Command::new(program("evoxo-coordinator"))
            .args(["init", "--name", "localhost", "--access"])
            .arg(&secure.directory)
            .output();
        assert!(named.expect("it starts").status.success());
        let (coordinator, page) = begin(&secure, "127.0.0.1:0", "127.0.0.1:0", life);
        Self { secure, coordinator, page }
    }

    async fn token(&self, role: Role, uses: u32) -> String {
        self.secure.token(self.coordinator.address, role, 3600, uses).await
    }

    fn browser(&self) -> Browser {
        Browser::new(&self.secure.directory, self.page)
    }

    /// A browser that is logged in with this role.
    async fn known(&self, role: Role) -> Browser {
        let mut browser = self.browser();
        let answer = browser.login(&self.token(role, 1).await).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        browser
    }

    async fn audit(&self) -> Vec<String> {
        self.secure.audit_log(self.coordinator.address, 0).await.lines
    }
}

/// Starts a coordinator and returns the address of its page.
fn begin(secure: &Secure<'_>, listen: &str, page: &str, life: &str) -> (Coordinator, SocketAddr) {
    let coordinator = secure.coordinator(listen, &["--page", page, "--session-life", life]);
    let log = coordinator.process.log();
    let told = log.split("the page is at https://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
    (coordinator, told.unwrap_or_else(|| panic!("{log}")))
}

/// A browser that knows the cluster's authority and keeps a cookie.
#[derive(Clone)]
struct Browser {
    page: SocketAddr,
    config: Arc<ClientConfig>,
    cookie: String,
}

impl Browser {
    fn new(access: &Path, page: SocketAddr) -> Self {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(access.join("ca.pem")).expect("the authority");
        roots.add(authority).expect("the authority");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("TLS")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { page, config: Arc::new(config), cookie: String::new() }
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.page.port())
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.page).await.expect("the server listens");
        let name = "localhost".try_into().expect("a name");
        TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await.expect("TLS")
    }

    /// The head of a request, with this origin and the cookie, but without the empty line at its end.
    fn head(&self, method: &str, path: &str, origin: &str) -> String {
        let host = self.host();
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nCookie: {}\r\n", self.cookie)
    }

    async fn send(&self, head: &str) -> Answer {
        let exchange = async {
            let mut stream = self.connect().await;
            // The server may refuse the request before everything is sent.
            let _ = stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await;
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received).await;
            Answer::of(&received)
        };
        timeout(PATIENCE, exchange).await.expect("an answer, or an end")
    }

    async fn ask(&self, method: &str, path: &str) -> Answer {
        self.send(&self.head(method, path, &format!("https://{}", self.host()))).await
    }

    /// Exchanges a token for a session, and keeps the cookie.
    async fn login(&mut self, token: &str) -> Answer {
        let head = self.head("POST", "/api/login", &format!("https://{}", self.host()));
        let answer = self.send(&format!("{head}Authorization: Bearer {token}\r\n")).await;
        if let Some(cookie) = answer.header("set-cookie") {
            assert!(cookie.starts_with("__Host-evoxo=") && cookie.contains("; Path=/; Max-Age="), "{cookie}");
            assert!(cookie.ends_with("HttpOnly; Secure; SameSite=Strict"), "{cookie}");
            self.cookie = cookie.split(';').next().expect("a value").to_owned();
        }
        answer
    }

    /// The identity of the login.
    async fn id(&self) -> String {
        let session = self.ask("GET", "/api/session").await;
        session.json()["id"].as_str().expect("a session").to_owned()
    }

    /// Opens the stream of events, and reads its first message.
    async fn events(&self) -> TlsStream<TcpStream> {
        let mut stream = self.connect().await;
        let head = self.head("GET", "/api/events", &format!("https://{}", self.host()));
        stream.write_all(format!("{head}\r\n").as_bytes()).await.expect("the server reads");
        let mut seen = String::new();
        while !seen.contains("data: ") {
            let mut more = [0; 4096];
            let count = timeout(PATIENCE, stream.read(&mut more)).await.expect("an event").expect("a stream");
            assert!(count > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&more[..count]));
        }
        stream
    }
}

/// Waits for the end of a stream of events, a last chunk without bytes.
async fn ends(mut stream: TlsStream<TcpStream>) {
    let all = async {
        let mut received = Vec::new();
        while !received.ends_with(b"0\r\n\r\n") {
            let mut more = [0; 4096];
            let count = stream.read(&mut more).await.expect("the viewer is not disconnected");
            assert!(count > 0, "the viewer is not disconnected");
            received.extend(&more[..count]);
        }
    };
    timeout(Duration::from_secs(10), all).await.expect("it ends");
}

#[tokio::test]
async fn the_page_needs_a_session_which_a_login_gives() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let stranger = lab.browser();
    // The page itself is public, because every program contains it. What it shows is not.
    let index = stranger.ask("GET", "/").await;
    assert_eq!((index.status, index.text().contains("/files/app.js")), (200, true));
    assert!(index.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'self'")));
    for path in ["session", "runs", "events", "runs/run", "runs/run/curves?column=0", "play", "nothing"] {
        let answer = stranger.ask("GET", &format!("/api/{path}")).await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.text());
        assert!(answer.text().contains("log in first"), "{}", answer.text());
    }
    assert_eq!(stranger.ask("POST", "/api/runs/run/cancel").await.status, 401);
    let known = lab.known(Role::Viewer).await;
    let session = known.ask("GET", "/api/session").await.json();
    assert_eq!((session["role"].clone(), session["may"].clone()), (json!("viewer"), json!([])));
    for path in ["runs", "play", "session"] {
        assert_eq!(known.ask("GET", &format!("/api/{path}")).await.status, 200, "{path}");
    }
    drop(known.events().await);
    // Cookies that are almost right, and the cookie of another login.
    let (name, value) = known.cookie.split_once('=').expect("a cookie");
    let (id, secret) = value.split_once('.').expect("a number and a secret");
    let other = lab.known(Role::Viewer).await;
    let others = other.cookie.split_once('.').expect("a secret").1;
    for wrong in [
        String::new(),
        format!("{name}={id}.{others}"),
        format!("{name}={id}.{}", secret.to_uppercase()),
        format!("{name}={id}"),
        format!("evoxo={value}"),
        format!("{name}={value}; {}", other.cookie),
    ] {
        let browser = Browser { cookie: wrong.clone(), ..known.clone() };
        assert_eq!(browser.ask("GET", "/api/runs").await.status, 401, "{wrong}");
    }
    // The secrets are not written in any file.
    for name in ["records.jsonl", "audit.jsonl"] {
        let text = std::fs::read_to_string(lab.secure.directory.join(name)).expect("a file");
        assert!(!text.contains(secret), "{name}");
    }
    assert!(!lab.coordinator.process.log().contains(secret));
}

#[tokio::test]
async fn tokens_are_exchanged_up_to_their_limit_and_not_by_workers() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let token = lab.token(Role::Operator, 1).await;
    let mut browser = lab.browser();
    let answer = browser.login(&token).await;
    assert_eq!((answer.status, answer.json()["role"].clone()), (200, json!("operator")));
    assert_eq!(answer.json()["may"][0], "pause");
    let again = lab.browser().login(&token).await;
    assert_eq!((again.status, again.header("set-cookie")), (403, None));
    assert!(again.text().contains("used up"), "{}", again.text());
    let worker = lab.browser().login(&lab.token(Role::Worker, 1).await).await;
    assert_eq!(worker.status, 403);
    assert!(worker.text().contains("for workers"), "{}", worker.text());
    for wrong in ["", "x", &token[1..], &token[..30]] {
        let answer = lab.browser().login(wrong).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (400, None), "{wrong}");
        assert!(!answer.text().contains(&token[20..30]), "a secret with a typo is not repeated");
    }
    // The token must not be in the address, which logs would keep.
    assert_eq!(lab.browser().ask("POST", &format!("/api/login?token={token}")).await.status, 400);
    assert_eq!(browser.ask("GET", "/api/login").await.status, 405);
}

#[tokio::test]
async fn only_operators_change_runs_and_the_log_names_them() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let mut person = lab.secure.person(lab.coordinator.address);
    person.submit("run", RUN).await;
    let (viewer, operator) = (lab.known(Role::Viewer).await, lab.known(Role::Operator).await);
    for verb in ["pause", "resume", "cancel", "delete", "note?text=seen"] {
        let refused = viewer.ask("POST", &format!("/api/runs/run/{verb}")).await;
        assert_eq!(refused.status, 403, "{verb}");
        assert!(refused.text().contains("your role is viewer"), "{}", refused.text());
    }
    assert_eq!(viewer.ask("POST", "/api/workers/1/drain").await.status, 403);
    assert_eq!(person.get("run").await.expect("the coordinator answers").state(), RunState::Running);
    // Another page in the operator's browser may not give orders, nor may this page without TLS.
    let host = operator.host();
    for origin in ["null", "https://evil.example", "https://localhost:1", &format!("http://{host}")] {
        let head = operator.head("POST", "/api/runs/run/cancel", origin);
        assert_eq!(operator.send(&head).await.status, 403, "{origin}");
    }
    let foreign = operator.head("GET", "/api/runs", &format!("https://{host}"));
    assert_eq!(operator.send(&foreign.replace("Host: localhost", "Host: evil.example")).await.status, 421);
    let site_of = format!("{foreign}Sec-Fetch-Site: same-site\r\n");
    assert_eq!(operator.send(&site_of).await.status, 403, "another port of this host is another page");
    assert_eq!(person.get("run").await.expect("the coordinator answers").state(), RunState::Running);
    let paused = operator.ask("POST", "/api/runs/run/pause").await;
    assert_eq!((paused.status, paused.json()["state"].clone()), (200, json!("paused")));
    let (viewer, operator) = (viewer.id().await, operator.id().await);
    let lines: Vec<Value> =
        lab.audit().await.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect::<Vec<Value>>();
    let said = |who: &str, what: &str, outcome: &str| {
        let holds = |line: &&Value| {
            let begins = line["outcome"].as_str().is_some_and(|it| it.starts_with(outcome));
            line["who"] == who && line["what"] == what && begins && line["from"] == "127.0.0.1"
        };
        lines.iter().filter(holds).count()
    };
    assert_eq!(said(&viewer, "login on the page", "done"), 1, "{lines:#?}");
    assert_eq!(said(&viewer, "cancelled on the page", "refused: your role is viewer"), 1, "{lines:#?}");
    assert_eq!(said(&operator, "paused on the page", "done"), 1, "{lines:#?}");
}

#[tokio::test]
async fn sessions_end_by_revocation_logout_and_restart() {
    let site = Site::new();
    let mut lab = Lab::new(&site);
    let address = lab.coordinator.address;
    let (one, two, three) =
        (lab.known(Role::Viewer).await, lab.known(Role::Operator).await, lab.known(Role::Viewer).await);
    let listed = lab.secure.identities(address).await;
    assert_eq!(listed.iter().filter(|known| known.name == "browser").count(), 3, "{listed:?}");
    // Open streams end too.
    let watching = one.events().await;
    let revoked = lab.secure.revoke(address, &one.id().await).await;
    assert!(revoked.known && revoked.connections == 1, "{revoked:?}");
    ends(watching).await;
    assert_eq!(one.ask("GET", "/api/runs").await.status, 401);
    let watching = two.events().await;
    let left = two.ask("POST", "/api/logout").await;
    assert_eq!(left.status, 200);
    assert!(left.header("set-cookie").is_some_and(|cookie| cookie.starts_with("__Host-evoxo=; Path=/; Max-Age=0;")));
    ends(watching).await;
    assert_eq!(two.ask("POST", "/api/runs/x/pause").await.status, 401);
    assert_eq!(lab.secure.identities(address).await.iter().filter(|known| known.name == "browser").count(), 1);
    assert_eq!(three.ask("GET", "/api/runs").await.status, 200);
    // Sessions are not kept on any disk.
    lab.coordinator.process.kill();
    let page = lab.page.to_string();
    (lab.coordinator, lab.page) = begin(&lab.secure, &address.to_string(), &page, "12h");
    assert_eq!(three.ask("GET", "/api/runs").await.status, 401);
    assert_eq!(lab.known(Role::Viewer).await.ask("GET", "/api/runs").await.status, 200);
}

#[tokio::test]
async fn a_session_ends_with_its_time() {
    let site = Site::new();
    let lab = Lab::with(&site, "4s");
    let known = lab.known(Role::Operator).await;
    let watching = known.events().await;
    assert_eq!(known.ask("GET", "/api/runs").await.status, 200);
    ends(watching).await;
    assert_eq!(known.ask("GET", "/api/runs").await.status, 401);
    assert_eq!(known.ask("POST", "/api/runs/x/pause").await.status, 401);
    let listed = lab.secure.identities(lab.coordinator.address).await;
    assert!(listed.iter().all(|known| known.name != "browser"), "{listed:?}");
}

/// Guesses are slow. Neither people who are logged in nor those with a valid token notice them.
#[tokio::test]
async fn guessing_is_limited_per_address() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let known = lab.known(Role::Operator).await;
    let token = lab.token(Role::Operator, 2).await;
    let guess = token.replace(&token[20..24], "AAAA");
    let mut statuses = Vec::new();
    for _ in 0..14 {
        statuses.push(lab.browser().login(&guess).await.status);
    }
    assert!(statuses.starts_with(&[403; 5]) && statuses.ends_with(&[429]), "{statuses:?}");
    // This browser is behind the same router.
    assert_eq!(lab.browser().login(&token).await.status, 200);
    // Cookies are guessed on one connection, as fast as possible.
    let guess = Browser { cookie: "__Host-evoxo=0123456789ab.AAAA".into(), ..lab.browser() };
    let some = format!("{}\r\n", guess.head("GET", "/api/runs", &format!("https://{}", guess.host()))).repeat(20);
    let (mut stream, mut received) = (guess.connect().await, String::new());
    let all = async {
        for sent in (20..=400).step_by(20) {
            stream.write_all(some.as_bytes()).await.expect("the server reads");
            while received.matches("HTTP/1.1 ").count() < sent && !received.contains("HTTP/1.1 429") {
                let mut more = [0; 4096];
                let count = stream.read(&mut more).await.expect("an answer");
                received.push_str(&String::from_utf8_lossy(&more[..count]));
            }
            if received.contains("HTTP/1.1 429") {
                return;
            }
        }
    };
    timeout(PATIENCE, all).await.expect("answers");
    let refused = received.matches("HTTP/1.1 401").count();
    assert!(refused > 100 && refused < 380 && received.contains("HTTP/1.1 429"), "{refused}");
    let mut late = lab.browser();
    assert_eq!(late.ask("GET", "/").await.status, 200, "a new connection has some requests of its own");
    assert_eq!(late.login(&token).await.status, 200);
    assert_eq!(known.ask("GET", "/api/runs").await.status, 200);
    assert_eq!(known.ask("POST", "/api/runs/none/pause").await.status, 404);
}

/// Clients that connect and send nothing hold few places, and only for a short time. Browsers that are logged in stay.
#[tokio::test]
async fn strangers_have_few_connections() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let known = lab.known(Role::Viewer).await;
    let watching = known.events().await;
    let mut held = Vec::new();
    for _ in 0..120 {
        held.push(TcpStream::connect(lab.page).await.expect("the server listens"));
    }
    let mut dropped = 0;
    for stream in &mut held {
        let ended = timeout(Duration::from_millis(20), stream.read(&mut [0; 1])).await;
        dropped += usize::from(ended.is_ok());
    }
    assert!((20..=40).contains(&dropped), "{dropped} of 120 were dropped at once");
    for stream in &mut held {
        let ended = timeout(Duration::from_secs(15), stream.read(&mut [0; 1])).await;
        ended.expect("the connection is closed").ok();
    }
    assert_eq!(known.ask("GET", "/api/runs").await.status, 200);
    drop(watching);
}

/// One login opens as many streams as it can. Another one behind the same router still sees the page and its events.
#[tokio::test]
async fn one_session_leaves_connections_to_others_at_its_address() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let (greedy, known) = (lab.known(Role::Viewer).await, lab.known(Role::Viewer).await);
    let watching = known.events().await;
    let mut held = Vec::new();
    for _ in 0..400 {
        let mut stream = greedy.connect().await;
        let head = greedy.head("GET", "/api/events", &format!("https://{}", greedy.host()));
        let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
        held.push(stream);
    }
    for _ in 0..3 {
        let mut new = lab.browser();
        assert_eq!(new.login(&lab.token(Role::Viewer, 1).await).await.status, 200);
        assert_eq!(new.ask("GET", "/api/runs").await.status, 200);
        let own = new.events().await;
        assert_eq!(known.ask("GET", "/api/runs").await.status, 200);
        held.push(own);
    }
    let mut watching = watching;
    let ended = timeout(Duration::from_millis(200), async {
        while watching.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
    });
    assert!(ended.await.is_err(), "an earlier stream continues");
}

#[tokio::test]
async fn the_page_uses_only_tls_1_3_and_is_not_on_the_workers_port() {
    let site = Site::new();
    let lab = Lab::new(&site);
    let plain = format!("GET / HTTP/1.1\r\nHost: localhost:{}\r\nConnection: close\r\n\r\n", lab.page.port());
    let told = Answer::of(&exchange(lab.page, plain.as_bytes()).await);
    assert_eq!((told.status, told.text().contains("use an address that starts with https://")), (400, true));
    let stream = lab.browser().connect().await;
    let (_, connection) = stream.get_ref();
    assert_eq!(connection.protocol_version(), Some(tokio_rustls::rustls::ProtocolVersion::TLSv1_3));
    // HTTP/2 is for programs, on the other port.
    let mut stream = stream;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("the server reads");
    let mut received = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut received)).await.expect("it ends");
    assert!(!String::from_utf8_lossy(&received).contains("200"), "{received:?}");
    let elsewhere = Browser { page: lab.coordinator.address, ..lab.browser() };
    assert_eq!(elsewhere.ask("GET", "/").await.status, 0, "the gRPC port serves no page");
    for (arguments, why) in [
        (&["--page", "127.0.0.1:0"][..], "--access"),
        (&["--access", "access", "--page-host", "lab"], "add --page ADDRESS:PORT"),
        (&["--access", "access", "--page", "127.0.0.1:0", "--no-page"], "--no-page"),
    ] {
        let output = std::process::Command::new(program("evoxo-coordinator")).args(arguments).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
}
