//! Addresses and settings of buckets, and answers that do not mean what they say.

use object_store::Error;

use super::*;
use crate::store::{answer::cause, bucket};

fn opened(spec: &str, variables: &[(&str, &str)]) -> Result<(), String> {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    bucket(spec, variables).map(drop).map_err(|error| error.to_string())
}

#[test]
fn addresses_of_buckets() {
    for good in ["s3://bucket", "s3://bucket/", "s3://my.bucket-1/a/b/", "s3://bucket/with space"] {
        assert_eq!(opened(good, &[]), Ok(()), "{good}");
    }
    for (wrong, words) in [
        ("s3://", "\"\" cannot be the name of a bucket"),
        ("s3:///prefix", "\"\" cannot be the name of a bucket"),
        ("s3://key:secret@bucket/a", "cannot be the name of a bucket"),
        ("s3://bucket//a", "\"/a\" cannot be a prefix of object names"),
        ("s3://bucket/a/../b", "\"a/../b\" cannot be a prefix"),
        ("gs://bucket", "of no known kind: name a directory, or a bucket as s3://BUCKET/PREFIX"),
    ] {
        let why = opened(wrong, &[]).unwrap_err();
        assert!(why.contains(wrong) && why.contains(words), "{why}");
    }
}

#[test]
fn settings_of_buckets() {
    for good in [
        &[("AWS_ENDPOINT", "https://minio:9000"), ("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b\n")][..],
        &[("AWS_ENDPOINT", "http://127.0.0.1:9000"), ("AWS_ALLOW_HTTP", "true")],
        &[("AWS_ENDPOINT_URL_S3", "https://[::1]:9000/"), ("AWS_ENDPOINT", "nonsense")],
        &[("AWS_ENDPOINT", ""), ("AWS_PROFILE", "mine"), ("AWS_TIMEOUT", "2m"), ("AWS_REGION", "eu-central-1")],
    ] {
        assert_eq!(opened("s3://bucket/a", good), Ok(()), "{good:?}");
    }
    for (wrong, words) in [
        (&[("AWS_ENDPOINT", "minio:9000")][..], "\"minio:9000\" is not the address of a server: set AWS_ENDPOINT"),
        (&[("AWS_ENDPOINT", "https://minio:90000")], "is not the address of a server"),
        (&[("AWS_ENDPOINT", "https://me:SECOND@minio")], "AWS_ENDPOINT has an @"),
        (&[("AWS_REGION", "eu central")], "\"https://s3.eu central.amazonaws.com\" is not the address of a server"),
        (&[("AWS_ENDPOINT", "http://minio:9000")], "http://minio:9000 is not encrypted: set AWS_ALLOW_HTTP=true"),
        (&[("AWS_SESSION_TOKEN", "FIRST\nSECOND")], "AWS_SESSION_TOKEN has characters other than printable ASCII"),
        (&[("AWS_ACCESS_KEY_ID", "a")], "check the bucket's name, AWS_ENDPOINT, AWS_REGION, and the keys"),
        (&[("AWS_TIMEOUT", "soon")], "cannot be used at https://s3.us-east-1.amazonaws.com: "),
    ] {
        let why = opened("s3://bucket/a", wrong).unwrap_err();
        assert!(why.contains(words) && why.contains("s3://bucket/a") && !why.contains('\n'), "{why}");
        assert!(!why.contains("FIRST") && !why.contains("SECOND"), "{why}");
    }
}

/// S3 says that a name is taken while another request for it is in progress. It says so even of an object that it has just
/// written itself, if its first answer was lost.
#[test]
fn the_stores_claim_that_a_name_is_taken_is_verified() {
    let faulty = Arc::new(Faulty::default());
    let mut store = Store::over(faulty.clone(), "memory", registry().clone());
    for (epoch, fault) in [(1, Fault::Taken), (2, Fault::WrittenButTaken)] {
        faulty.next_put(fault);
        store.lead().unwrap();
        assert_eq!(store.epoch().unwrap().number, epoch);
    }
    for (number, fault) in [(1, Fault::Taken), (2, Fault::WrittenButTaken)] {
        faulty.next_put(fault);
        store.write("demo", &order(number)).unwrap();
    }
    for (number, fault) in [(1, Fault::Taken), (2, Fault::WrittenButTaken)] {
        faulty.next_put(fault);
        store.write("demo", &checkpoint(number)).unwrap();
    }
    let run = store.load().unwrap().0.remove(0);
    assert_eq!((run.order_number, run.order.rounds_done, run.checkpoint_number), (2, 2, 2));
}

#[test]
fn a_servers_answer_is_reported_on_one_line() {
    let told = |text: &str| cause(&Error::Generic { store: "S3", source: text.into() });
    assert_eq!(told("Connection refused (os error 111)"), "Connection refused (os error 111)");
    assert_eq!(
        told(
            "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?>\n<Error><Code>Signature</Code>\
             <Message>It does\nnot match.</Message><CanonicalRequest>x-amz-security-token:SESSION</CanonicalRequest></Error>"
        ),
        "it answers 403 Forbidden, Signature: It does not match."
    );
    assert_eq!(
        told("Server returned non-2xx status code: 502 Bad Gateway: <html>SESSION"),
        "it answers 502 Bad Gateway"
    );
    assert_eq!(told(&"long ".repeat(200)).chars().count(), 300);
}
