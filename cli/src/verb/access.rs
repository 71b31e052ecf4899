//! `evoxo join`, `evoxo token` and `evoxo access`: the people and workers who may use a coordinator with an access directory.

use std::{
    io::Write as _,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{anyhow, bail};
use clap::Subcommand;
use evoxo_access::{Id, Newcomer, Refusal, Role, Typed, now_s};
use evoxo_process::{Addresses, duration, host_name};
use evoxo_proto::v1::{self, access_service_client::AccessServiceClient};
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::{
    remote::{Coordinator, channel, converse, refused},
    say::{program, tell, usage, whole},
};

/// The longest list of identities, in bytes: some hundred bytes for each of 100,000 identities.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// The token, and the file in which to keep the access that it is exchanged for.
#[derive(clap::Args)]
pub(crate) struct Join {
    /// A token with the role viewer, submitter or operator, as `evoxo token create` prints it
    #[arg(value_name = "TOKEN", env = "EVOXO_TOKEN", hide_env_values = true)]
    token: Typed,
    /// The addresses of the coordinator and its standbys, separated by commas
    #[arg(
        long = "coordinator",
        value_name = "HOST:PORT,...",
        env = "EVOXO_COORDINATOR",
        hide_env_values = true,
        default_value_t
    )]
    coordinator: Addresses,
    /// The access file to write
    #[arg(long, value_name = "FILE", env = "EVOXO_ACCESS", hide_env_values = true)]
    access: PathBuf,
    /// Your name in the operator's list [default: the name of this host]
    #[arg(long)]
    name: Option<String>,
}

/// The commands for tokens.
#[derive(Subcommand)]
pub(crate) enum Tokens {
    /// Create a token and print it: the one line that lets hosts or people join
    Create {
        /// The role that the token gives: viewer, submitter, operator, worker or trusted-worker
        #[arg(long)]
        role: Role,
        /// How long the token can be used: 30m, 12h, 7d
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
        ttl: Duration,
        /// How many times the token can be used
        #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u32>(1, 100_000))]
        uses: u32,
        #[command(flatten)]
        coordinator: Coordinator,
    },
}

/// The commands for those who have joined.
#[derive(Subcommand)]
pub(crate) enum Access {
    /// List the tokens that can still be used, and everybody with a valid certificate
    List {
        #[command(flatten)]
        coordinator: Coordinator,
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Refuse an identity or a token from now on, and end its open sessions at once
    Revoke {
        /// The ID, as `access list` shows it
        id: Id,
        #[command(flatten)]
        coordinator: Coordinator,
    },
    /// Print the newest lines of the audit log: who requested what, when and from where
    Log {
        #[command(flatten)]
        coordinator: Coordinator,
        /// How many lines to print
        #[arg(long, value_name = "N", default_value = "100", value_parser = whole::<u32>(1, 1000))]
        lines: u32,
        /// Leave out requests that were refused
        #[arg(long)]
        done: bool,
    },
}

async fn client(coordinator: &Coordinator) -> anyhow::Result<AccessServiceClient<Channel>> {
    Ok(AccessServiceClient::new(channel(coordinator).await?).max_decoding_message_size(RESPONSE_BYTES_MAX))
}

/// A time in readable form.
fn time(since_1970_s: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since_1970_s)).to_string()
}

pub(crate) fn join_cluster(arguments: &Join) -> anyhow::Result<ExitCode> {
    let Join { token, coordinator, access, name } = arguments;
    let token = token.token().map_err(usage)?;
    if access.exists() {
        bail!("{} exists: choose another file with --access, or remove it", access.display());
    }
    let name = name.clone().unwrap_or_else(host_name);
    let newcomer = Newcomer::new(token, access.clone())?;
    let file = converse(async {
        newcomer.join(coordinator.all(), &name).await.map_err(|refusal| match refusal {
            Refusal::Final(why) => anyhow!(why),
            other => anyhow!("{}; run the same command again, which does not use the token twice", other.sentence()),
        })
    })?;
    newcomer.keep(&file)?;
    let facts = file.certificate().map_err(anyhow::Error::msg)?;
    let (role, id, shown) = (facts.identity.role, facts.identity.id, access.display());
    tell(format_args!("joined as {role} {id}; the access file is {shown}: keep it secret"));
    match role.is_worker() {
        true => tell(format_args!(
            "it is for a worker: evoxo-worker --coordinator {coordinator} --access {shown}; people need a token of the role viewer, \
             submitter or operator"
        )),
        false => {
            tell(format_args!("next: export EVOXO_ACCESS={shown} EVOXO_COORDINATOR={coordinator}; {} runs", program()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn tokens(verb: &Tokens) -> anyhow::Result<ExitCode> {
    let Tokens::Create { role, ttl, uses, coordinator } = verb;
    let request = v1::CreateTokenRequest { role: role.to_string(), lifetime_s: ttl.as_secs(), uses: *uses };
    let token = converse(async {
        Ok(client(coordinator).await?.create_token(request).await.map_err(refused)?.into_inner().token)
    })?;
    writeln!(crate::say::stdout(), "{token}")?;
    let address = coordinator.address.from_elsewhere();
    match role.is_worker() {
        true => tell(format_args!("on each host: evoxo-worker --coordinator {address} --join TOKEN")),
        false => {
            tell(format_args!("for them: {} join TOKEN --coordinator {address} --access FILE", program()));
            tell("or they log in with the token on the coordinator's page, if the coordinator was started with --page");
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn access(verb: &Access) -> anyhow::Result<ExitCode> {
    match verb {
        Access::List { coordinator, json } => list(coordinator, *json),
        Access::Revoke { id, coordinator } => revoke(id, coordinator),
        Access::Log { coordinator, lines, done } => {
            let request = v1::ReadLogRequest { lines: *lines, done: *done };
            let v1::ReadLogResponse { lines, missing } = converse(async {
                Ok(client(coordinator).await?.read_log(request).await.map_err(refused)?.into_inner())
            })?;
            let mut out = crate::say::stdout();
            // The lines contain names that others have chosen, and JSON leaves some control characters as they are.
            let safe = |line: &String| -> String {
                let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", c as u32) } else { c.to_string() };
                line.chars().map(escaped).collect()
            };
            lines.iter().try_for_each(|line| writeln!(out, "{}", safe(line)))?;
            if !missing.is_empty() {
                bail!("lines are missing: {missing}");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list(coordinator: &Coordinator, as_json: bool) -> anyhow::Result<ExitCode> {
    let listed = converse(async {
        Ok(client(coordinator).await?.list_access(v1::ListAccessRequest {}).await.map_err(refused)?.into_inner())
    })?;
    let mut out = crate::say::stdout();
    if as_json {
        let token = |token: &v1::Token| {
            json!({"id": token.id, "role": token.role, "uses": token.uses, "expires": time(token.expires),
                "created_by": token.created_by})
        };
        let identity = |known: &v1::Identity| {
            json!({"id": known.id, "role": known.role, "name": known.name, "address": known.address,
                "token": known.token, "expires": time(known.expires), "connections": known.connections})
        };
        let tokens: Value = listed.tokens.iter().map(token).collect();
        let identities: Value = listed.identities.iter().map(identity).collect();
        writeln!(out, "{:#}", json!({"tokens": tokens, "identities": identities}))?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{:<12} {:<14} {:<20} {:<15} {:<20} {:>11}", "ID", "role", "name", "from", "until", "connections")?;
    for known in &listed.identities {
        let v1::Identity { id, role, name, address, expires, connections, .. } = known;
        writeln!(out, "{id:<12} {role:<14} {name:<20} {address:<15} {:<20} {connections:>11}", time(*expires))?;
    }
    for token in &listed.tokens {
        let v1::Token { id, role, uses, expires, .. } = token;
        let name = format!("token, {uses} {}", if *uses == 1 { "use" } else { "uses" });
        writeln!(out, "{id:<12} {role:<14} {name:<20} {:<15} {:<20}", "", time(*expires))?;
    }
    let (identities, tokens) = (listed.identities.len(), listed.tokens.len());
    let noun = if identities == 1 { "identity" } else { "identities" };
    let s = if tokens == 1 { "" } else { "s" };
    writeln!(out, "{identities} {noun} and {tokens} token{s} at {}", time(now_s()))?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(id: &Id, coordinator: &Coordinator) -> anyhow::Result<ExitCode> {
    let request = v1::RevokeRequest { id: id.to_string() };
    let revoked =
        converse(async { Ok(client(coordinator).await?.revoke(request).await.map_err(refused)?.into_inner()) })?;
    let mut out = crate::say::stdout();
    let told = match revoked.known {
        true => format!("{id} is refused from now on; {} open connections were ended", revoked.connections),
        false => format!("{id} is not in this list, or was revoked before; a certificate with this ID is refused"),
    };
    writeln!(out, "{told}")?;
    if !revoked.token.is_empty() {
        let (program, token) = (program(), revoked.token);
        writeln!(out, "its token can still be used, so its holder could join again: {program} access revoke {token}")?;
    }
    Ok(ExitCode::SUCCESS)
}
