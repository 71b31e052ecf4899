//! The bytes of stored objects.

use bytes::Bytes;
use evoxo_common::{
    config::Config,
    digest::Digest,
    envelope::{Kind, seal},
    replica::Replica,
};
use evoxo_proto::v1;
use prost::Message as _;

/// An order, ready to be stored: what a person wants of a run, after so many rounds.
#[must_use]
pub fn seal_order(config: &Config, wanted: v1::RunState, rounds_done: u64) -> Bytes {
    let order = v1::Order { config: config.to_toml(), wanted: wanted as u32, rounds_done };
    seal(Kind::Order, &order.encode_to_vec())
}

/// A checkpoint of these replicas, ready to be stored. `signature` is the build's behaviour.
pub fn seal_checkpoint<'a>(
    config: &Config,
    signature: Digest,
    replicas: impl IntoIterator<Item = &'a Replica>,
) -> Bytes {
    let checkpoint = v1::Checkpoint {
        config_hash: Bytes::copy_from_slice(&config.hash().0),
        signature: Bytes::copy_from_slice(&signature.0),
        replicas: replicas.into_iter().map(Replica::save).collect(),
    };
    seal(Kind::Checkpoint, &checkpoint.encode_to_vec())
}

/// A replica, ready to be stored or fetched.
#[must_use]
pub fn seal_finished(config: &Config, signature: Digest, replica: &Replica) -> Bytes {
    let finished = v1::Finished {
        config_hash: Bytes::copy_from_slice(&config.hash().0),
        signature: Bytes::copy_from_slice(&signature.0),
        replica: Some(replica.save()),
    };
    seal(Kind::Finished, &finished.encode_to_vec())
}
