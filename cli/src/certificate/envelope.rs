//! DSSE envelopes: a statement and signatures of it as JSON, which other tools verify too.
//! <https://github.com/secure-systems-lab/dsse>, version 1.0.2.

use anyhow::Context as _;
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE},
};
use evoxo_access::{SigningKey, VerifyingKey};
use serde_json::{Value, json};

/// The type of an in-toto statement.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The most signatures that are read.
const SIGNATURES_MAX: usize = 16;

/// A statement with its signatures.
pub(crate) struct Envelope {
    /// The bytes that are signed.
    pub(crate) payload: Vec<u8>,
    signatures: Vec<Signature>,
}

struct Signature {
    /// The name of the key, as the file says it.
    keyid: String,
    signature: Vec<u8>,
    /// The public key, if the file has it. It is no evidence of who signed, and only shows later changes.
    public: Option<VerifyingKey>,
}

/// Bytes from base64, in either alphabet.
pub(crate) fn from_base64(text: &Value) -> Option<Vec<u8>> {
    let text = text.as_str()?;
    STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()
}

/// The bytes that a signature covers.
fn signed(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

impl Envelope {
    /// An envelope of this statement, signed if there is a key.
    pub(crate) fn new(payload: Vec<u8>, key: Option<&SigningKey>) -> anyhow::Result<Self> {
        let sign = |key: &SigningKey| -> anyhow::Result<Signature> {
            let signature = key.sign(&signed(&payload)).context("cannot sign the certificate")?;
            Ok(Signature { keyid: key.public().id(), signature, public: Some(key.public()) })
        };
        let signatures = key.map(sign).transpose()?.into_iter().collect();
        Ok(Self { payload, signatures })
    }

    pub(crate) fn to_json(&self) -> Value {
        let signature = |it: &Signature| {
            json!({
                "keyid": it.keyid,
                "sig": STANDARD.encode(&it.signature),
                "publicKey": it.public.as_ref().map(VerifyingKey::to_pem),
            })
        };
        json!({
            "payloadType": PAYLOAD_TYPE,
            "payload": STANDARD.encode(&self.payload),
            "signatures": self.signatures.iter().map(signature).collect::<Value>(),
        })
    }

    /// Reads an envelope; `None` if this is not one.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        let signature = |it: &Value| {
            let keyid = it["keyid"].as_str().unwrap_or_default().to_owned();
            let public = it["publicKey"].as_str().and_then(|pem| VerifyingKey::from_pem(pem.as_bytes()));
            Some(Signature { keyid, signature: from_base64(&it["sig"])?, public })
        };
        let signatures = json["signatures"].as_array().filter(|all| all.len() <= SIGNATURES_MAX)?;
        let signatures = signatures.iter().map(signature).collect::<Option<Vec<Signature>>>()?;
        let payload = from_base64(&json["payload"]).filter(|_| json["payloadType"] == PAYLOAD_TYPE)?;
        Some(Self { payload, signatures })
    }

    /// The name of the key that signed the statement: the trusted key, if there is one, otherwise the first whose public
    /// part is in the envelope.
    ///
    /// # Errors
    /// The reason why the signatures are not good, as the end of a sentence.
    pub(crate) fn signer(&self, trusted: Option<&VerifyingKey>) -> Result<Option<String>, String> {
        let message = signed(&self.payload);
        let changed =
            |id: &str| format!("has a signature of the key {id} that does not fit: it was changed after signing");
        for it in &self.signatures {
            // The name in the file is not signed, so it counts only in messages.
            if it.public.as_ref().is_some_and(|key| !key.verifies(&message, &it.signature)) {
                return Err(changed(&it.keyid));
            }
        }
        let Some(key) = trusted else {
            return Ok(self.signatures.iter().find_map(|it| it.public.as_ref()).map(VerifyingKey::id));
        };
        let id = key.id();
        match self.signatures.first() {
            _ if self.signatures.iter().any(|it| key.verifies(&message, &it.signature)) => Ok(Some(id)),
            None => Err(format!("is not signed, but it should be by the key {id}")),
            Some(it) if it.keyid == id => Err(changed(&id)),
            Some(it) => Err(format!("is signed by the key {}, and not by {id}", it.keyid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the specification, with the type of in-toto statements.
    #[test]
    fn the_signed_bytes_are_those_of_the_specification() {
        assert_eq!(signed(b"hello world"), b"DSSEv1 28 application/vnd.in-toto+json 11 hello world");
    }
}
