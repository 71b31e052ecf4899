//! The safetensors format: named tensors of floats after a JSON header that any language can read.
//!
//! ```text
//! 8 bytes   length of the header, little endian
//! header    {"__metadata__": {KEY: TEXT, ...}, NAME: {"dtype": "F32", "shape": [..], "data_offsets": [BEGIN, END]}, ...}
//!           filled up with spaces to a multiple of 8 bytes
//! floats    of all tensors, little endian, row by row, without gaps; offsets count from here
//! ```
//!
//! This is our own implementation, because the format's crate keeps metadata in a hash map: the order of metadata, and
//! therefore the file's bytes, would differ from run to run. In the tests that crate, which is also the Python package, reads
//! our files.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use evoxo_common::card::Entries;
use evoxo_common::text::quoted;

/// The maximum size of a header, in bytes.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// The header's key for the metadata.
const METADATA: &str = "__metadata__";

/// A named array of floats.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor<'a> {
    pub(super) name: String,
    /// The sizes of all axes. The order is row-major: floats along the last axis are adjacent.
    pub(super) shape: Vec<usize>,
    /// The tensor's floats as in the file.
    pub(super) bytes: &'a [u8],
}

impl Tensor<'_> {
    pub(super) fn values(&self) -> impl Iterator<Item = f32> {
        let (words, _) = self.bytes.as_chunks::<4>();
        words.iter().map(|word| f32::from_le_bytes(*word))
    }
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File<'a> {
    /// Texts by name, in the order of the file.
    pub(super) metadata: Vec<(String, String)>,
    /// The tensors in the order of their floats.
    pub(super) tensors: Vec<Tensor<'a>>,
}

/// The bytes of a file.
pub(super) fn write(metadata: &[(&str, String)], tensors: &[(String, Vec<usize>, &[f32])]) -> Vec<u8> {
    let texts: Map<String, Value> =
        metadata.iter().map(|(key, text)| ((*key).to_owned(), text.clone().into())).collect();
    let mut header = Map::from_iter([(METADATA.to_owned(), Value::Object(texts))]);
    let mut begin = 0;
    for (name, shape, values) in tensors {
        assert_eq!(shape.iter().product::<usize>(), values.len(), "the tensor {name} has another size than its shape");
        let end = begin + 4 * values.len();
        header.insert(name.clone(), json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}));
        begin = end;
    }
    let mut header = Value::Object(header).to_string();
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(tensors.iter().flat_map(|(_, _, values)| *values).flat_map(|value| value.to_le_bytes()));
    bytes
}

/// Reads a file.
///
/// # Errors
/// A message about "it", the file, if the bytes are not exactly a file of this format with 32-bit floats.
pub(super) fn read(bytes: &[u8]) -> Result<File<'_>, String> {
    let short = || format!("it ends within its header: it has {} bytes", bytes.len());
    let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
    let length = u64::from_le_bytes(*length);
    if length > HEADER_BYTES_MAX {
        return Err(format!("it is not a safetensors file: its header would have {length} bytes"));
    }
    let (header, data) = rest.split_at_checked(length as usize).ok_or_else(short)?;
    let no_header =
        |why: &dyn std::fmt::Display| format!("it is not a safetensors file: its header is not JSON: {why}");
    let header: Entries = serde_json::from_slice(header).map_err(|error| no_header(&error))?;
    if let Some(twice) = header.twice() {
        return Err(format!("its header has the key {} twice", quoted(twice)));
    }
    let mut file = File { metadata: Vec::new(), tensors: Vec::new() };
    let mut places = Vec::new();
    for (name, value) in header.into_vec() {
        match value {
            Value::Object(texts) if name == METADATA => file.metadata = read_metadata(texts)?,
            value => places.push((read_place(&name, value)?, name)),
        }
    }
    places.sort_by_key(|(place, _)| place.data_offsets);
    let mut before = 0;
    for (Place { shape, data_offsets: [begin, end], .. }, name) in places {
        if begin != before {
            return Err(format!("the floats of its tensor {} do not follow those before them", quoted(&name)));
        }
        let truncated = || format!("it ends within the tensor {}: it is truncated", quoted(&name));
        let bytes = data.get(begin..end).ok_or_else(truncated)?;
        file.tensors.push(Tensor { name, shape, bytes });
        before = end;
    }
    if before != data.len() {
        return Err(format!("it has {} bytes behind its last tensor", data.len() - before));
    }
    Ok(file)
}

/// A tensor's entry in the header.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

fn read_place(name: &str, value: Value) -> Result<Place, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("its header is wrong about the tensor {}: {why}", quoted(name));
    let place: Place = serde_json::from_value(value).map_err(|error| wrong(&error))?;
    if place.dtype != "F32" {
        return Err(wrong(&format_args!("its floats are {}, not \"F32\"", quoted(&place.dtype))));
    }
    let count = place.shape.iter().try_fold(4_usize, |bytes, size| bytes.checked_mul(*size));
    let [begin, end] = place.data_offsets;
    if count.is_none() || count != end.checked_sub(begin) {
        return Err(wrong(&format_args!("the shape {:?} does not fit {begin} to {end} bytes", place.shape)));
    }
    Ok(place)
}

fn read_metadata(texts: Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let entry = |(key, value): (String, Value)| match value {
        Value::String(text) => Ok((key, text)),
        _ => Err(format!("its metadata {} are not a text", quoted(&key))),
    };
    texts.into_iter().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

    fn written(metadata: &[(&str, String)], tensors: &Tensors) -> Vec<u8> {
        let tensors: Vec<(String, Vec<usize>, &[f32])> =
            tensors.iter().map(|(name, shape, values)| (name.clone(), shape.clone(), values.as_slice())).collect();
        write(metadata, &tensors)
    }

    fn tensors() -> impl Strategy<Value = Tensors> {
        let tensor = prop::collection::vec(0_usize..4, 0..4).prop_flat_map(|shape| {
            let count = shape.iter().product::<usize>();
            (Just(shape), prop::collection::vec(-1e3_f32..1e3, count))
        });
        prop::collection::btree_map("[a-z.0-9]{1,9}", tensor, 0..5)
            .prop_map(|map| map.into_iter().map(|(name, (shape, values))| (name, shape, values)).collect())
    }

    proptest! {
        /// The file is read twice: by our reader, and by the format's own crate.
        #[test]
        fn writing_and_reading_are_inverse(tensors in tensors(), text in "[ -~]{0,9}") {
            let bytes = written(&[("b", text.clone()), ("a", "2".into())], &tensors);
            let file = read(&bytes).unwrap();
            prop_assert_eq!(&file.metadata, &[("b".to_owned(), text.clone()), ("a".to_owned(), "2".to_owned())]);
            // Tensors without floats may come in any order.
            let mut found: Tensors = file.tensors.iter()
                .map(|tensor| (tensor.name.clone(), tensor.shape.clone(), tensor.values().collect())).collect();
            found.sort_by(|one, two| one.0.cmp(&two.0));
            prop_assert_eq!(&found, &tensors);

            let (length, metadata) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
            prop_assert_eq!(length % 8, 0);
            prop_assert_eq!(&metadata.metadata().as_ref().unwrap()["b"], &text);
            let other = safetensors::SafeTensors::deserialize(&bytes).unwrap();
            prop_assert_eq!(other.len(), tensors.len());
            for (name, shape, values) in &tensors {
                let tensor = other.tensor(name).unwrap();
                let floats: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
                prop_assert_eq!((tensor.shape(), tensor.data()), (shape.as_slice(), floats.as_slice()));
            }
        }

        #[test]
        fn files_of_the_safetensors_crate_are_read(values in prop::collection::vec(-9_f32..9.0, 6)) {
            let floats: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let view = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2, 3], &floats).unwrap();
            let bytes = safetensors::serialize([("w", view)], None).unwrap();
            let file = read(&bytes).unwrap();
            prop_assert_eq!(file.tensors.len(), 1);
            prop_assert_eq!(file.tensors[0].values().collect::<Vec<f32>>(), values);
        }

        #[test]
        fn any_bytes_are_a_file_or_rejected_with_a_reason(bytes in prop::collection::vec(any::<u8>(), 0..40), header in "[{}\\[\\]\":,a-zF32_0-9 ]{0,60}") {
            let _ = read(&bytes);
            let _ = read(&[&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat());
        }
    }

    /// The file is written by hand, so the two readers above cannot agree on another format.
    #[test]
    fn the_bytes_are_pinned() {
        let bytes = written(&[("k", "v".into())], &vec![("w".into(), vec![1, 2], vec![1.0, -2.5])]);
        let header = r#"{"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}"#;
        let padded = format!("{header:<88}");
        let expected = [&[88, 0, 0, 0, 0, 0, 0, 0], padded.as_bytes(), &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]].concat();
        assert_eq!(String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&expected));
        assert_eq!(bytes, expected);
    }

    #[test]
    fn no_byte_may_be_missing_or_added() {
        let whole = written(
            &[("k", "v".into())],
            &vec![("w".into(), vec![2], vec![1.0, 2.0]), ("u".into(), vec![1], vec![3.0])],
        );
        assert!(read(&whole).is_ok());
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length} of {} bytes", whole.len());
        }
        assert_eq!(read(&whole[..whole.len() - 1]).unwrap_err(), "it ends within the tensor \"u\": it is truncated");
        assert_eq!(read(&[whole, vec![0]].concat()).unwrap_err(), "it has 1 bytes behind its last tensor");
    }

    #[test]
    fn invalid_files_are_rejected_with_a_reason() {
        for (header, says) in [
            ("", "not JSON"),
            ("[]", "not JSON"),
            (r#"{"a":1}"#, "the tensor \"a\": invalid type"),
            (r#"{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}"#, "are \"F64\", not \"F32\""),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}"#, "[1] does not fit 0 to 8 bytes"),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}}"#, "[1] does not fit 8 to 4 bytes"),
            (r#"{"a":{"dtype":"F32","shape":[9223372036854775807,9],"data_offsets":[0,4]}}"#, "does not fit"),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, "do not follow"),
            (
                r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
                "do not follow",
            ),
            (
                r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#,
                "\"a\" twice",
            ),
            (
                r#"{"__metadata__":{"a":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#,
                "metadata \"a\" are not a text",
            ),
            (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, "4 bytes behind its last tensor"),
            ("{}", "8 bytes behind its last tensor"),
        ] {
            let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
            let sentence = read(&bytes).unwrap_err();
            assert!(sentence.contains(says), "{header}: {sentence}");
        }
        assert!(read(&[0xff; 9]).unwrap_err().contains("would have 18446744073709551615 bytes"));
        assert!(read(&[1, 2, 3]).unwrap_err().contains("it has 3 bytes"));
    }
}
