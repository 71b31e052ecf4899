//! Fitness functions as WebAssembly modules: what a module must export, what it gets, and what it answers.
//! docs/own-problem.md describes this for people who write one.
//!
//! Each candidate gets its own instance, so nothing is kept from one to the next, and everything that a module can use up is
//! counted. So an evaluation is a function of the module, the genes and the seed. wasmi is built without the features that
//! differ between machines (threads, relaxed vector instructions), and its `deterministic` feature gives all NaNs the same
//! bits.

mod calls;
mod limits;
#[cfg(test)]
mod tests;
mod workload;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, ExternType, FuncType, ValType};
use wasmparser::{Parser, Payload};

use super::{activity::Activity, genome::Candidate, notation::Notation};
use limits::MEMORY_BYTES_MAX;

pub(super) use calls::Counts;
pub(super) use workload::workload;

/// The most bytes of a module. As a setting, together with the rest of a configuration, it fits into a file of 1 MiB.
pub(super) const MODULE_BYTES_MAX: usize = 512 << 10;
/// The most characters of a module as a setting.
pub(super) const MODULE_TEXT_MAX: usize = MODULE_BYTES_MAX.div_ceil(3) * 4;
/// The most fuel for a candidate: some minutes.
pub(super) const FUEL_MAX: u64 = 100_000_000_000;

/// The memory that a module must export.
const MEMORY: &str = "memory";
/// The function of the module that returns an address with room for some bytes.
const BUFFER: &str = "evoxo_buffer";
/// The function of the module that evaluates a candidate.
const EVALUATE: &str = "evoxo_evaluate";

/// The most nested calls.
const CALLS_MAX: usize = 10_000;
/// The most bytes of the parameters, variables and intermediate values of all nested calls.
const STACK_BYTES_MAX: usize = 8 << 20;
/// The most variables of a function. Each call sets them all to zero without using any fuel for it.
const VARIABLES_MAX: u64 = 1000;
/// The most variables of all functions together. Compiling takes time for each, while one or two bytes of a module can
/// declare thousands.
const VARIABLES_ALL_MAX: u64 = 200_000;
/// The size of a page of memory.
const PAGE_BYTES: u64 = 64 << 10;
/// The most characters of an error from wasmi that are shown.
const SAID_MAX: usize = 200;

/// A module that can evaluate candidates.
pub(super) struct Module {
    engine: Engine,
    compiled: wasmi::Module,
}

impl Module {
    /// Compiles a module and checks its exports.
    ///
    /// # Errors
    /// A sentence that begins with what is wrong with the module.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MODULE_BYTES_MAX {
            return Err(format!("the module has {} bytes, more than {MODULE_BYTES_MAX}", bytes.len()));
        }
        if !bytes.starts_with(b"\0asm") {
            return Err("this is not a WebAssembly module: it does not begin with the bytes \\0asm".into());
        }
        if !bytes[4..].starts_with(&1_u32.to_le_bytes()) {
            return Err(
                "this is a WebAssembly component, or a module whose version is not 1: build a plain module".into()
            );
        }
        check_variables(bytes)?;
        let engine = Engine::new(&config());
        let compiled = wasmi::Module::new(&engine, bytes).map_err(|error| {
            let said: String = error.to_string().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("the module cannot be used: {}", said.chars().take(SAID_MAX).collect::<String>())
        })?;
        if let Some(import) = compiled.imports().next() {
            let name: String = format!("{}.{}", import.module(), import.name()).chars().take(SAID_MAX).collect();
            return Err(format!(
                "the module imports {name:?}, but there is nothing to import: build it without imports"
            ));
        }
        check_exports(&compiled)?;
        Ok(Self { engine, compiled })
    }
}

/// Sets everything that results depend on, whatever wasmi's defaults are. Compilation is eager: lazy compilation would use
/// the fuel of the first call.
fn config() -> Config {
    let mut config = Config::default();
    config.consume_fuel(true).compilation_mode(CompilationMode::Eager).ignore_custom_sections(true);
    config.set_max_recursion_depth(CALLS_MAX).set_max_stack_height(STACK_BYTES_MAX);
    config.enforced_limits(EnforcedLimits::strict());
    config.wasm_multi_memory(false).wasm_tail_call(false).wasm_custom_page_sizes(false).wasm_wide_arithmetic(false);
    config.wasm_mutable_global(true).wasm_sign_extension(true).wasm_saturating_float_to_int(true);
    config.wasm_multi_value(true).wasm_bulk_memory(true).wasm_reference_types(true).wasm_extended_const(true);
    config.floats(true);
    config
}

/// Checks the number of variables. Bytes that cannot be parsed here are left for wasmi to report.
fn check_variables(bytes: &[u8]) -> Result<(), String> {
    let mut all = 0;
    for payload in Parser::new(0).parse_all(bytes) {
        let Ok(Payload::CodeSectionEntry(body)) = payload else { continue };
        let groups = body.get_locals_reader().into_iter().flatten().flatten();
        let variables: u64 = groups.map(|(count, _)| u64::from(count)).sum();
        if variables > VARIABLES_MAX {
            return Err(format!("a function of the module has {variables} variables, more than {VARIABLES_MAX}"));
        }
        all += variables;
    }
    if all > VARIABLES_ALL_MAX {
        return Err(format!(
            "the functions of the module have {all} variables together, more than {VARIABLES_ALL_MAX}"
        ));
    }
    Ok(())
}

fn check_exports(module: &wasmi::Module) -> Result<(), String> {
    match module.get_export(MEMORY) {
        Some(ExternType::Memory(memory)) if memory.minimum() * PAGE_BYTES > MEMORY_BYTES_MAX as u64 => {
            return Err(format!(
                "the module's memory begins with {} bytes, more than {MEMORY_BYTES_MAX}",
                memory.minimum() * PAGE_BYTES
            ));
        }
        Some(ExternType::Memory(_)) => {}
        _ => return Err(format!("the module does not export its memory as {MEMORY:?}")),
    }
    let functions =
        [(BUFFER, &[ValType::I32][..], "(i32) -> i32"), (EVALUATE, &EVALUATE_TYPES, "(i32, i32, i64) -> i32")];
    for (name, parameters, shown) in functions {
        let wanted = FuncType::new(parameters.iter().copied(), [ValType::I32]);
        match module.get_export(name) {
            Some(ExternType::Func(found)) if found == wanted => {}
            Some(ExternType::Func(found)) => {
                let types = |types: &[ValType]| {
                    types.iter().take(10).map(|it| format!("{it:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
                };
                let (takes, gives) = (types(found.params()), types(found.results()));
                return Err(format!("the module's {name:?} is ({takes}) -> ({gives}), but it must be {shown}"));
            }
            _ => return Err(format!("the module does not export a function {name:?}: it must be {shown}")),
        }
    }
    Ok(())
}

const EVALUATE_TYPES: [ValType; 3] = [ValType::I32, ValType::I32, ValType::I64];

/// Encodes a module as a setting.
pub(super) fn encode(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Decodes the result of [`encode`]. Different texts never give the same bytes.
///
/// # Errors
/// A sentence.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    BASE64_STANDARD
        .decode(text)
        .map_err(|_| "module is not in base64: leave it out, and `evoxo run` and `evoxo submit` write it".into())
}

/// The genes of a candidate as a module gets them: part after part, each starting at a multiple of 8 bytes, see
/// [`Notation::bytes`]. The bytes of a part that is not there are 0.
pub(super) fn written(candidate: &Candidate, notations: &[Notation], activity: &Activity) -> Vec<u8> {
    let mut bytes = Vec::new();
    let is_there = activity.parts(candidate, notations);
    for ((part, notation), is_there) in candidate.parts.iter().zip(notations).zip(is_there) {
        let start = bytes.len();
        bytes.extend(notation.bytes(part));
        if !is_there {
            bytes[start..].fill(0);
        }
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}
