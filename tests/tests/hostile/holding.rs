//! Peers that occupy what others need: connections, calls, unread responses, unfinished requests, names of runs.

use std::{
    io::{Read as _, Write as _},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use evoxo_access::Role;
use evoxo_proto::v1::{WatchRequest, from_worker::Message as Outgoing};
use evoxo_tests::{
    live::{PATIENCE, Site, relay},
    person::{Person, digest_of_one_thread},
    script::{Session, hello, spawn_worker},
    secure::Secure,
};
use tokio::{io::copy_bidirectional, net::TcpSocket, task::JoinSet};
use tonic::{Code, transport::Endpoint};

use super::frames::{DATA, WINDOW_UPDATE, call, frame, quiet};
use crate::{assert_quick, echoes, pause, some_seconds};

/// Another address of this machine.
const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Reads frames up to the coordinator's `WINDOW_UPDATE` (RFC 9113, section 6.9). Before it, a connection may send only 65,535
/// bytes of data; a connection that sends more is ended.
fn await_window(stream: &mut TcpStream) {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).expect("a frame");
        let [a, b, c, kind, ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        stream.read_exact(&mut payload).expect("its payload");
        if kind == WINDOW_UPDATE {
            return;
        }
    }
}

/// One address opens as many connections as it gets, without a call. Another address is served at once, and the connections
/// are closed.
#[tokio::test]
async fn connections_without_calls_lock_no_one_out() {
    let site = Site::new();
    // Few open files are allowed; the shares are the same. With THOROUGH the coordinator has its usual limit, and more
    // clients than that connect.
    let thorough = std::env::var_os("THOROUGH").is_some();
    let (coordinator, count) = match thorough {
        true => (site.coordinator(&[]), 4600),
        false => (site.limited_coordinator("ulimit -n 464", &[]), 400),
    };
    let mut crowd: Vec<TcpStream> = (0..count).filter_map(|_| quiet(coordinator.address)).collect();
    assert!(crowd.len() > count / 2, "only {} connected", crowd.len());
    let config = echoes(1, 3, 4, 16);
    let mut elsewhere = Person::at(coordinator.address, ELSEWHERE);
    let start = Instant::now();
    elsewhere.submit("run", &config).await;
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    // After five seconds an address with many connections loses those without a call.
    tokio::time::sleep(Duration::from_secs(12)).await;
    let mut left = 0;
    for stream in &mut crowd {
        stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        let ended = loop {
            match stream.read(&mut [0; 4096]) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() == std::io::ErrorKind::ConnectionReset,
            }
        };
        left += usize::from(!ended);
    }
    assert!(left < count / 2, "{left} connections are left");
    let worker = spawn_worker(coordinator.address, "good");
    assert_eq!(elsewhere.finished("run").await.digest, digest_of_one_thread(&config));
    worker.abort();
}

/// Requests that start and do not end, on many connections: memory is limited, and others are served.
#[tokio::test]
async fn unfinished_requests_use_little_memory() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut held = Vec::new();
    for _ in 0..64 {
        let Some(mut stream) = quiet(coordinator.address) else { continue };
        await_window(&mut stream);
        for number in 0..8 {
            let id = 2 * number + 1;
            // A message of 1 MiB, of which as much is sent as flow control allows.
            let beginning = [&[0], &(1_u32 << 20).to_be_bytes()[..], &[7; 16_000]].concat();
            let bytes = [call(id, "/evoxo.v1.RunService/Submit"), frame(DATA, 0, id, &beginning)].concat();
            stream.write_all(&bytes).expect("there is room for this much");
        }
        held.push(stream);
    }
    let config = echoes(1, 3, 4, 16);
    for mut person in [Person::of(coordinator.address), Person::at(coordinator.address, ELSEWHERE)] {
        person.try_submit("run", &config).await.expect("the coordinator answers");
    }
    if let Some(bytes) = coordinator.process.memory_bytes("VmHWM") {
        assert!(bytes < 150 << 20, "{} MiB", bytes >> 20);
    }
    // After the time limit of a request, first the calls end and then the connections without calls.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_quick(&coordinator.process.log());
    drop(held);
}

/// A thousand watches that are never read cost almost nothing.
#[tokio::test]
async fn unread_watches_are_cheap() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    // The run lasts longer than this test.
    person.submit("run", &some_seconds(20, 100_000)).await;
    let _worker = site.worker(coordinator.address, &[]);
    let mut watches = Vec::new();
    for _ in 0..10 {
        let mut watcher = Person::of(coordinator.address);
        for _ in 0..100 {
            watches.push(watcher.client.watch(WatchRequest { name: "run".into() }).await.expect("a stream"));
        }
    }
    let before = coordinator.process.processor_time();
    tokio::time::sleep(Duration::from_secs(4)).await;
    if let (Some(before), Some(after)) = (before, coordinator.process.processor_time()) {
        let share = (after - before).as_secs_f64() / 4.0;
        assert!(share < 0.5, "{share:.2} of a processor");
    }
    assert_eq!(watches.len(), 1000);
    assert_quick(&coordinator.process.log());
}

/// Each address gets only a share of the runs.
#[tokio::test]
async fn one_address_cannot_use_up_all_runs() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    let mut person = Person::of(coordinator.address);
    let config = echoes(1, 1, 1, 16);
    let mut refused = None;
    for number in 0..1024 {
        if let Err(status) = person.try_submit(&format!("run-{number}"), &config).await {
            refused = Some((number, status));
            break;
        }
    }
    let (number, status) = refused.expect("all runs were given to one address");
    assert_eq!((number, status.code()), (768, Code::ResourceExhausted), "{status}");
    let mut elsewhere = Person::at(coordinator.address, ELSEWHERE);
    assert!(elsewhere.submit("other", &config).await);
}

/// Forwards a connection to the coordinator from this address.
async fn carry_from(from: Ipv4Addr, mut near: tokio::net::TcpStream, coordinator: SocketAddr) {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((from, 0).into()).expect("an address of this machine");
    let mut far = socket.connect(coordinator).await.expect("the server listens");
    // Either side may end as it likes.
    let _ = copy_bidirectional(&mut near, &mut far).await;
}

/// A client with one certificate watches from eight addresses. Others are answered, even at these addresses.
#[tokio::test]
async fn one_identity_cannot_use_up_all_calls_from_many_addresses() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let mut operator = secure.person(coordinator.address);
    operator.submit("run", &echoes(1, 1, 1, 16)).await;
    let greedy = secure.newcomer(coordinator.address, Role::Viewer, "greedy").await;
    let (mut watches, mut refused, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for last in 2..10 {
        let (from, to) = (Ipv4Addr::new(127, 0, 0, last), coordinator.address);
        let address = relay(move |near| carry_from(from, near, to));
        relays.push(address);
        let mut person = Person::with(address, &greedy);
        for _ in 0..250 {
            match person.client.watch(WatchRequest { name: "run".into() }).await {
                Ok(watch) => watches.push(watch),
                Err(status) => refused.push(status),
            }
        }
    }
    assert_eq!((watches.len(), refused.len()), (1152, 848));
    assert!(
        refused.iter().all(|why| why.code() == Code::ResourceExhausted && why.message().contains("from you")),
        "{:?}",
        refused[0]
    );
    for address in relays {
        assert!(Person::with(address, &secure.operator()).get("run").await.is_ok());
    }
    // Places that it gives back can be taken again.
    watches.truncate(1000);
    let mut again = Person::with(coordinator.address, &greedy);
    assert!(again.get("run").await.is_ok(), "streams have their own limit");
    let start = Instant::now();
    while let Err(status) = again.client.watch(WatchRequest { name: "run".into() }).await {
        assert!(status.code() == Code::ResourceExhausted && start.elapsed() < PATIENCE, "{status}");
    }
    assert_quick(&coordinator.process.log());
}

/// All clients are behind one router. Clients that watch as often as they can make room for a new one, whose calls they
/// cannot affect. A client that reads nothing at all loses its connection.
#[tokio::test]
async fn watchers_at_one_address_leave_room_for_others_there() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    // No worker computes the run, so it does not end.
    secure.person(address).submit("run", &echoes(1, 1, 1, 16)).await;
    let watch = async |person: &mut Person| {
        person.client.watch(WatchRequest { name: "run".into() }).await.map(tonic::Response::into_inner)
    };
    let greedy =
        [secure.newcomer(address, Role::Viewer, "greedy").await, secure.newcomer(address, Role::Viewer, "too").await];
    let mut watches = Vec::new();
    for number in 0..8 {
        let mut person = Person::with(address, &greedy[number / 6]);
        for _ in 0..192 {
            watches.push(watch(&mut person).await.expect("1,536 streams are allowed"));
        }
    }
    for name in ["one", "two", "three"] {
        let mut person = Person::with(address, &secure.newcomer(address, Role::Viewer, name).await);
        assert!(person.get("run").await.is_ok(), "{name}");
        let mut own = Vec::new();
        for _ in 0..10 {
            own.push(watch(&mut person).await.expect("another identity makes room"));
        }
        // The new watches stay.
        pause(1200).await;
        for watch in &mut own {
            assert!(watch.message().await.is_ok_and(|run| run.is_some()), "{name}");
            let more = tokio::time::timeout(Duration::ZERO, watch.message()).await;
            assert!(!matches!(more, Ok(Ok(None) | Err(_))), "{name}: {more:?}");
        }
        watches.extend(own);
    }
    // The first watches were told why they ended.
    let why = loop {
        match watches[0].message().await {
            Ok(run) => assert!(run.is_some(), "it ended without a reason"),
            Err(why) => break why,
        }
    };
    assert!(why.code() == Code::ResourceExhausted && why.message().contains("to make room"), "{why}");
    assert_quick(&coordinator.process.log());
}

/// Without an access directory no client has an identity, and each connection counts separately.
#[tokio::test]
async fn without_identities_connections_leave_room_for_others_at_their_address() {
    let site = Site::new();
    let coordinator = site.coordinator(&[]);
    Person::of(coordinator.address).submit("run", &echoes(1, 1, 1, 16)).await;
    let mut watches = Vec::new();
    for _ in 0..8 {
        let mut person = Person::of(coordinator.address);
        for _ in 0..192 {
            watches.push(
                person.client.watch(WatchRequest { name: "run".into() }).await.expect("1,536 streams are allowed"),
            );
        }
    }
    let mut person = Person::of(coordinator.address);
    assert!(person.get("run").await.is_ok());
    let mut own = person.client.watch(WatchRequest { name: "run".into() }).await.expect("there is room").into_inner();
    assert!(own.message().await.is_ok_and(|run| run.is_some()));
    assert_quick(&coordinator.process.log());
}

/// A session is cheap to start: 256 fit on one connection, and nothing is known about them before their Hello.
#[tokio::test]
async fn sessions_without_hello_have_a_limit() {
    let site = Site::new();
    // The limit on connections, and so on new sessions, is 600; an address may have 450 of them.
    let coordinator = site.limited_coordinator("ulimit -n 664", &[]);
    let endpoint =
        |from| Endpoint::from_shared(format!("http://{}", coordinator.address)).map(|to| to.local_address(from));
    let open = async |count: usize| {
        let mut all = JoinSet::new();
        for _ in 0..3 {
            let channel =
                endpoint(None).expect("an address is a good URL").connect().await.expect("the server listens");
            (0..count / 3).for_each(|_| drop(all.spawn(Session::open_over(channel.clone()))));
        }
        all.join_all().await.into_iter().partition::<Vec<_>, _>(Result::is_ok)
    };
    let (begun, refused) = open(600).await;
    let refused: Vec<_> = refused.into_iter().filter_map(Result::err).collect();
    assert!(begun.len() >= 450 && !refused.is_empty(), "{} begun", begun.len());
    assert!(refused.iter().all(|why| why.code() == Code::ResourceExhausted), "{:?}", refused[0]);
    let config = echoes(1, 3, 4, 16);
    let mut elsewhere = Person::at(coordinator.address, ELSEWHERE);
    elsewhere.submit("run", &config).await;
    let channel =
        endpoint(Some(ELSEWHERE)).expect("an address is a good URL").connect().await.expect("the server listens");
    let mut worker = Session::join_over(channel, "w").await.expect("the worker has its own share");
    let worker = tokio::spawn(async move { worker.work(usize::MAX).await });
    assert_eq!(elsewhere.finished("run").await.digest, digest_of_one_thread(&config));
    worker.abort();
    // Sessions that send Hello make room for others, although some of them stay.
    let mut greeted: Vec<Session> = begun.into_iter().filter_map(Result::ok).collect();
    for session in &greeted {
        session.send(Outgoing::Hello(hello("late"))).await;
    }
    for session in &mut greeted {
        // Either Welcome, or a request to come back later.
        drop(session.receive().await);
    }
    assert_eq!(open(450).await.0.len(), 450);
    assert_quick(&coordinator.process.log());
}
