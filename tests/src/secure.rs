//! Clusters with an access directory.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Output},
};

use evoxo_access::{AccessFile, Dialer, Newcomer, Refusal, Role, Token};
use evoxo_proto::v1::{
    CreateTokenRequest, Identity, ListAccessRequest, ReadLogRequest, ReadLogResponse, RevokeRequest, RevokeResponse,
    access_service_client::AccessServiceClient,
};
use tonic::transport::{Channel, Endpoint};

use crate::{
    live::{Coordinator, Process, Site},
    person::Person,
    programs::program,
};

/// An access directory in a site, and operations with it.
pub struct Secure<'a> {
    site: &'a Site,
    /// The access directory.
    pub directory: PathBuf,
}

impl<'a> Secure<'a> {
    /// Creates the directory with `evoxo-coordinator init`.
    ///
    /// # Panics
    /// If that fails.
    #[must_use]
    pub fn init(site: &'a Site, name: &str) -> Self {
        let directory = site.path(name);
        let made = Command::new(program("evoxo-coordinator")).args(["init", "--access"]).arg(&directory).output();
        assert!(made.expect("it starts").status.success());
        Self { site, directory }
    }

    /// A coordinator on this address.
    #[must_use]
    pub fn coordinator(&self, listen: &str, arguments: &[&str]) -> Coordinator {
        let directory = self.directory.to_string_lossy();
        self.site.coordinator_on(listen, &[&["--access", &*directory], arguments].concat())
    }

    /// The path of the operator's access file.
    #[must_use]
    pub fn operator_path(&self) -> PathBuf {
        self.directory.join("operator.access")
    }

    /// The operator's access file.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn operator(&self) -> AccessFile {
        AccessFile::load(&self.operator_path()).expect("init made it")
    }

    /// The operator as a client of the run service.
    #[must_use]
    pub fn person(&self, coordinator: SocketAddr) -> Person {
        Person::with(coordinator, &self.operator())
    }

    /// The operator as a client of the access service.
    #[must_use]
    pub fn access(&self, coordinator: SocketAddr) -> AccessServiceClient<Channel> {
        AccessServiceClient::new(channel(coordinator, Some(&self.operator())))
    }

    /// The newest lines of the audit log: this many, or 100 for 0.
    ///
    /// # Panics
    /// If it cannot be read.
    pub async fn audit_log(&self, coordinator: SocketAddr, lines: u32) -> ReadLogResponse {
        let request = ReadLogRequest { lines, done: false };
        self.access(coordinator).read_log(request).await.expect("an audit log").into_inner()
    }

    /// Creates a token.
    ///
    /// # Panics
    /// If the coordinator refuses.
    pub async fn token(&self, coordinator: SocketAddr, role: Role, lifetime_s: u64, uses: u32) -> String {
        let request = CreateTokenRequest { role: role.to_string(), lifetime_s, uses };
        self.access(coordinator).create_token(request).await.expect("a token").into_inner().token
    }

    /// Joins with this token under this name.
    ///
    /// # Errors
    /// If the coordinator refuses.
    ///
    /// # Panics
    /// If the site cannot keep the key.
    pub async fn join(&self, coordinator: SocketAddr, token: &Token, name: &str) -> Result<AccessFile, Refusal> {
        let path = self.site.path(&format!("joined-{name}"));
        let newcomer = Newcomer::new(token.clone(), path).expect("a key");
        let file = newcomer.join(&[coordinator.to_string().parse().expect("an address")], name).await?;
        newcomer.keep(&file).expect("the site keeps it");
        Ok(file)
    }

    /// Joins as a newcomer with this role.
    ///
    /// # Panics
    /// If that fails.
    pub async fn newcomer(&self, coordinator: SocketAddr, role: Role, name: &str) -> AccessFile {
        let token = self.token(coordinator, role, 60, 1).await.parse().expect("a token");
        let joined = self.join(coordinator, &token, name).await;
        joined.unwrap_or_else(|refusal| panic!("{}", refusal.sentence()))
    }

    /// All identities with a certificate.
    ///
    /// # Panics
    /// If they cannot be listed.
    pub async fn identities(&self, coordinator: SocketAddr) -> Vec<Identity> {
        let listed = self.access(coordinator).list_access(ListAccessRequest {}).await;
        listed.expect("a list").into_inner().identities
    }

    /// Revokes an identity or a token.
    ///
    /// # Panics
    /// If that fails.
    pub async fn revoke(&self, coordinator: SocketAddr, id: &str) -> RevokeResponse {
        let revoked = self.access(coordinator).revoke(RevokeRequest { id: id.into() }).await;
        revoked.expect("the revocation is confirmed").into_inner()
    }

    /// A worker that joins with a token, or uses the certificate that an earlier worker of this name got with it.
    #[must_use]
    pub fn worker(&self, coordinator: SocketAddr, token: &str, name: &str) -> Process {
        let file = self.site.path(&format!("{name}.access"));
        let file = file.to_string_lossy();
        self.site.worker(coordinator, &["--join", token, "--access", &*file, "--name", name])
    }

    /// Runs the command-line client, with this access file if there is one.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn evoxo(&self, coordinator: SocketAddr, access: Option<PathBuf>, arguments: &[&str]) -> Output {
        let mut command = Command::new(program("evoxo"));
        command.args(arguments).args(["--coordinator", &coordinator.to_string()]);
        if let Some(access) = access {
            command.arg("--access").arg(access);
        }
        command.env_remove("EVOXO_ACCESS").output().expect("the program starts")
    }
}

/// A connection with this certificate, or in plain text.
///
/// # Panics
/// If the certificate cannot be used.
#[must_use]
pub fn channel(coordinator: SocketAddr, access: Option<&AccessFile>) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{coordinator}")).expect("an address is a good URL");
    let dialer = access.map_or_else(Dialer::plain, |access| Dialer::with(access).expect("an access file"));
    dialer.connect_lazy(&endpoint)
}
