//! Connections that start TLS and never finish it.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Instant,
};

use evoxo_access::Role;
use evoxo_tests::{live::Site, person::digest_of_one_thread, secure::Secure};

use crate::{assert_quick, pause, some_seconds};

/// The start of a ClientHello (RFC 8446, section 4.1.2), whose length says that more follows.
const BEGUN: [u8; 11] = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];

/// There are 1,000 such connections from everybody's address, with new ones all the time. Clients that finish their handshake
/// get in, and the run continues.
#[tokio::test]
async fn unfinished_handshakes_lock_no_one_out() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let address = coordinator.address;
    let config = some_seconds(2, 30);
    let token = secure.token(address, Role::Worker, 3600, 2).await;
    let _one = secure.worker(address, &token, "one");
    let mut person = secure.person(address);
    person.submit("run", &config).await;
    person.worker("one").await;
    let begin = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.write_all(&BEGUN).ok().map(|()| stream)
    };
    let mut crowd: Vec<TcpStream> = (0..1000).filter_map(|_| begin()).collect();
    assert_eq!(crowd.len(), 1000);
    // New certificates and new connections, while the crowd is there.
    let began = Instant::now();
    let _two = secure.worker(address, &token, "two");
    secure.person(address).worker("two").await;
    assert!(began.elapsed().as_secs() < 60, "it took {:?}", began.elapsed());
    assert_eq!(person.finished("run").await.digest, digest_of_one_thread(&config));
    // In the end every one of them is closed.
    pause(6000).await;
    for stream in &mut crowd {
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a timeout");
        let read = stream.read(&mut [0; 64]);
        let ended = match &read {
            Ok(length) => *length == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(ended, "{read:?}");
    }
    assert_quick(&coordinator.process.log());
}
