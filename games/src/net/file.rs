//! A network as a file. The weights are tensors and the architecture is in the file's metadata, so the file alone is enough.

use serde_json::Value;

use super::{
    Architecture,
    safetensors::{File, read, write},
};

/// The ending of a network's file.
pub(super) const FILE_ENDING: &str = "safetensors";

/// The metadata key that names the file's format, and its value.
const FORMAT: (&str, &str) = ("format", "evoxo-network-1");

/// A network with its weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The network's layers.
    pub architecture: Architecture,
    /// All weights, in the order of [`Architecture::tensors`]. They must be finite.
    pub weights: Vec<f32>,
}

impl Network {
    /// The bytes of the network's file, in the safetensors format. [`Network::of_file`] is the inverse.
    #[must_use]
    pub fn to_file(&self) -> Vec<u8> {
        let tensors = self.architecture.tensors();
        let tensors = tensors
            .iter()
            .map(|tensor| (tensor.name.to_string(), tensor.shape.clone(), &self.weights[tensor.range.clone()]));
        let metadata = [(FORMAT.0, FORMAT.1.to_owned()), ("architecture", self.architecture_json().to_string())];
        write(&metadata, &tensors.collect::<Vec<_>>())
    }

    /// The network in a file with these bytes.
    ///
    /// # Errors
    /// A message about "it", the file, if it is not a safetensors file or does not contain one of our networks, or if a
    /// tensor is missing, unknown, of another shape, or not finite.
    pub fn of_file(bytes: &[u8]) -> Result<Self, String> {
        let file = read(bytes)?;
        let metadata = |key: &str| file.metadata.iter().find(|(other, _)| other == key).map(|(_, text)| text.as_str());
        if metadata(FORMAT.0) != Some(FORMAT.1) {
            return Err(format!(
                "it is not a network of this version of evoxo: its metadata have no \"{}\": \"{}\"",
                FORMAT.0, FORMAT.1
            ));
        }
        let text = metadata("architecture").ok_or("its metadata have no \"architecture\"")?;
        let architecture: Architecture = serde_json::from_str(text)
            .map_err(|error| format!("the architecture in its metadata is not known: {error}"))?;
        architecture.check().map_err(|why| format!("its architecture is not possible: {why}"))?;
        let weights = weights(&architecture, &file)?;
        Ok(Self { architecture, weights })
    }

    /// The network's architecture, in the form of the metadata and of cards.
    pub(super) fn architecture_json(&self) -> Value {
        serde_json::to_value(self.architecture).expect("an architecture is plain data")
    }
}

/// The weights of a file in canonical order.
fn weights(architecture: &Architecture, file: &File<'_>) -> Result<Vec<f32>, String> {
    let mut weights = vec![0.0; architecture.parameters()];
    let expected = architecture.tensors();
    for tensor in &expected {
        let name = &tensor.name;
        let found = file.tensors.iter().find(|found| found.name == *name);
        let found =
            found.ok_or_else(|| format!("its architecture asks for the tensor {name:?}, which is not there"))?;
        if found.shape != tensor.shape {
            let (is, asked) = (&found.shape, &tensor.shape);
            return Err(format!("its tensor {name:?} has the shape {is:?}, but its architecture needs {asked:?}"));
        }
        for (weight, value) in weights[tensor.range.clone()].iter_mut().zip(found.values()) {
            if !value.is_finite() {
                return Err(format!("its tensor {name:?} holds {value}, which is not a finite number"));
            }
            *weight = value;
        }
    }
    let foreign = file.tensors.iter().find(|found| expected.iter().all(|tensor| found.name != *tensor.name));
    match foreign {
        None => Ok(weights),
        Some(tensor) => Err(format!("it has a tensor {:?} that its architecture does not have", tensor.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        board::Shape,
        net::{Activation, First},
    };
    use evoxo_common::rng::Stream;
    use serde_json::json;

    type Metadata = Vec<(&'static str, String)>;
    type Tensors = Vec<(String, Vec<usize>, Vec<f32>)>;

    fn network(first: First, second: usize, biases: bool) -> Network {
        let (shape, activation) = (Shape::SCORE_FOUR, Activation::Logistic);
        let architecture = Architecture { shape, first, second, biases, activation, shared: false };
        let weights = architecture.initial(Stream::root(3));
        Network { architecture, weights }
    }

    fn deep_structured() -> Network {
        network(First::Lines { detectors: 4 }, 32, true)
    }

    #[test]
    fn a_network_is_read_from_its_file_alone() {
        for network in [
            deep_structured(),
            network(First::Lines { detectors: 4 }, 0, false),
            network(First::Dense { units: 95 }, 51, true),
        ] {
            assert_eq!(Network::of_file(&network.to_file()), Ok(network));
        }
    }

    /// Reads the file without our parser: the header as plain JSON, and a weight by its offset.
    #[test]
    fn every_weight_can_be_located_in_the_file() {
        let network = deep_structured();
        let file = network.to_file();
        let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
        insta::assert_snapshot!(format!("{header:#}"));
        let architecture: Value =
            serde_json::from_str(header["__metadata__"]["architecture"].as_str().unwrap()).unwrap();
        assert_eq!(architecture["first"], json!({"lines": {"detectors": 4}}));
        // This is a weight of the second layer: from unit 200 of the first layer to unit 7.
        let begin = header["second.weight"]["data_offsets"][0].as_u64().unwrap() as usize;
        let place = 8 + length + begin + 4 * (200 * 32 + 7);
        let weight = f32::from_le_bytes(file[place..place + 4].try_into().unwrap());
        let tensors = network.architecture.tensors();
        let second = tensors.iter().find(|tensor| tensor.name == "second.weight").unwrap();
        assert_eq!(weight.to_bits(), network.weights[second.range.start + 200 * 32 + 7].to_bits());
    }

    /// A file whose contents contradict its metadata.
    #[test]
    fn a_mismatched_file_is_rejected_with_a_reason() {
        let whole = deep_structured();
        let sentence = |change: &dyn Fn(&mut Metadata, &mut Tensors)| {
            let mut metadata =
                vec![("format", FORMAT.1.to_owned()), ("architecture", whole.architecture_json().to_string())];
            let tensors = whole.architecture.tensors();
            let mut tensors = tensors
                .iter()
                .map(|t| (t.name.to_string(), t.shape.clone(), whole.weights[t.range.clone()].to_vec()))
                .collect();
            change(&mut metadata, &mut tensors);
            let tensors: Vec<(String, Vec<usize>, &[f32])> =
                tensors.iter().map(|(name, shape, values)| (name.clone(), shape.clone(), values.as_slice())).collect();
            Network::of_file(&write(&metadata, &tensors)).map(|_| ()).unwrap_err()
        };
        let sentences = [
            sentence(&|metadata, _| metadata.truncate(0)),
            sentence(&|metadata, _| metadata.truncate(1)),
            sentence(&|metadata, _| metadata[1].1 = "{}".into()),
            sentence(&|metadata, _| metadata[1].1 = metadata[1].1.replace("\"logistic\"", "\"relu\"")),
            sentence(&|metadata, _| metadata[1].1 = metadata[1].1.replace("\"second\":32", "\"second\":100000")),
            sentence(&|metadata, _| metadata[1].1 = metadata[1].1.replace("\"second\":32", "\"second\":31")),
            sentence(&|metadata, _| metadata[1].1 = metadata[1].1.replace("\"biases\":true", "\"biases\":false")),
            sentence(&|_, tensors| drop(tensors.remove(0))),
            sentence(&|_, tensors| tensors[0].2[5] = f32::NAN),
            sentence(&|_, tensors| tensors[0].2[5] = f32::NEG_INFINITY),
            sentence(&|_, tensors| tensors[0].1.reverse()),
        ];
        insta::assert_snapshot!("sentences", sentences.join("\n"));
    }
}
