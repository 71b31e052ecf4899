//! `evoxo submit --autoscale slurm`, with real workers and a Slurm made of scripts (`tests/slurm`), whose jobs are processes.
//! `deploy/slurm/check` does the same with a real Slurm.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use evoxo_access::Role;
use evoxo_proto::v1::{CancelRequest, PauseRequest, ResumeRequest, RunState};
use evoxo_tests::{
    live::{Coordinator, PATIENCE, Process, Site},
    person::digest_of_one_thread,
    programs::{program, workspace},
    secure::Secure,
};

/// Sixteen tasks at a time, more than the slots of three jobs.
const ENDLESS: &str = "experiment = \"dispatch\"\nreplicas = 2\n[settings]\nrounds = 1000000\ntasks = 8\npayload_bytes = 16\n\
                       reply_bytes = 16\n";

/// A place where jobs can be submitted. Jobs that are left over end with it.
struct Slurm<'a> {
    site: &'a Site,
    desk: PathBuf,
    coordinator: &'a Coordinator,
    operator: PathBuf,
}

impl<'a> Slurm<'a> {
    async fn new(site: &'a Site, secure: &Secure<'_>, coordinator: &'a Coordinator) -> Self {
        let desk = site.path("slurm");
        fs::create_dir_all(desk.join("jobs")).expect("a directory");
        let token = secure.token(coordinator.address, Role::Worker, 3600, 50).await;
        fs::write(desk.join("token"), token).expect("a file");
        Self { site, desk, coordinator, operator: secure.operator_path() }
    }

    /// The command for a run of this name, whose jobs are this script.
    fn submit(&self, run: &str, config: &str, script: &Path) -> Process {
        let file = self.site.path(&format!("{run}.toml"));
        fs::write(&file, config).expect("a file");
        let path = env::var("PATH").expect("PATH is set");
        let mut command = Command::new(program("evoxo"));
        command.arg("submit").arg(file).arg("--access").arg(&self.operator);
        command.args(["--coordinator", &self.coordinator.address.to_string(), "--autoscale", "slurm"]);
        command.args(["--max-jobs", "3", "--idle", "1s", "--"]).arg(script);
        command.env("PATH", format!("{}:{path}", workspace().join("tests/slurm").display()));
        command.env("SLURM_DESK", &self.desk).env("EVOXO_DIRECTORY", &self.desk);
        command.env("EVOXO_WORKER", program("evoxo-worker"));
        self.site.start("submit", &mut command)
    }

    /// The jobs that have not ended, as files.
    fn jobs(&self) -> Vec<PathBuf> {
        let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        below(self.desk.join("jobs")).flat_map(below).collect()
    }

    async fn until_all_ended(&self) {
        let start = Instant::now();
        while !self.jobs().is_empty() {
            assert!(start.elapsed() < PATIENCE, "jobs are left: {:?}", self.jobs());
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Slurm<'_> {
    fn drop(&mut self) {
        for process in self.jobs().into_iter().filter_map(|job| fs::read_to_string(job).ok()) {
            // The process may have ended.
            let _ = Command::new("kill").args(["-KILL", process.trim()]).status();
        }
    }
}

fn worker_script() -> PathBuf {
    workspace().join("deploy/slurm/worker.sbatch")
}

/// Jobs start while there are more tasks than slots, end when they are of no use, start again, and are gone at the end of the
/// run.
#[tokio::test]
async fn jobs_follow_the_open_tasks() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let slurm = Slurm::new(&site, &secure, &coordinator).await;
    let mut person = secure.person(coordinator.address);
    person.submit("endless", ENDLESS).await;
    let mut submit = slurm.submit("endless", ENDLESS, &worker_script());
    person.wait("endless", |run| run.workers == 3).await;
    person.client.pause(PauseRequest { name: "endless".into() }).await.expect("the run is paused");
    person.wait("endless", |run| run.workers == 0).await;
    slurm.until_all_ended().await;
    let ended = fs::read_to_string(slurm.desk.join("ended")).expect("jobs were ended");
    assert!(["101_1", "102_1", "103_1"].iter().all(|job| ended.contains(job)), "{ended}");
    person.client.resume(ResumeRequest { name: "endless".into() }).await.expect("the run continues");
    person.wait("endless", |run| run.workers > 0).await;
    person.client.cancel(CancelRequest { name: "endless".into(), delete: false }).await.expect("the run is cancelled");
    assert_eq!(submit.end().await.code(), Some(1), "{}", submit.log());
    slurm.until_all_ended().await;
    let log = submit.log();
    assert!(log.contains("3 jobs: 0 queued, 0 starting, 3 at work"), "{log}");
    assert!(log.contains("error: endless was cancelled"), "{log}");
    assert!(!coordinator.process.log().contains("is lost"), "each left in order: {}", coordinator.process.log());
}

/// At the end of the run the command succeeds, and so do its jobs.
#[tokio::test]
async fn a_run_is_computed_only_by_jobs() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let slurm = Slurm::new(&site, &secure, &coordinator).await;
    let config = ENDLESS.replace("1000000", "100");
    let mut submit = slurm.submit("short", &config, &worker_script());
    assert_eq!(submit.end().await.code(), Some(0), "{}", submit.log());
    slurm.until_all_ended().await;
    let run = secure.person(coordinator.address).finished("short").await;
    assert_eq!(run.digest, digest_of_one_thread(&config));
}

/// When the command ends, its jobs end too, but the run is still there.
#[tokio::test]
async fn jobs_end_with_the_command() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let slurm = Slurm::new(&site, &secure, &coordinator).await;
    let mut person = secure.person(coordinator.address);
    person.submit("endless", ENDLESS).await;
    let mut submit = slurm.submit("endless", ENDLESS, &worker_script());
    person.wait("endless", |run| run.workers > 0).await;
    submit.signal("INT");
    assert_eq!(submit.end().await.code(), Some(1), "{}", submit.log());
    assert!(submit.log().contains("endless continues with other workers"), "{}", submit.log());
    slurm.until_all_ended().await;
    let run = person.wait("endless", |run| run.workers == 0).await;
    assert_eq!(run.state(), RunState::Running);
    assert!(run.tasks_waiting > 0 && run.tasks_assigned == 0, "{run:?}");
}

#[tokio::test]
async fn obstacles_to_jobs_are_reported() {
    let site = Site::new();
    let secure = Secure::init(&site, "access");
    let coordinator = secure.coordinator("127.0.0.1:0", &[]);
    let slurm = Slurm::new(&site, &secure, &coordinator).await;
    // A script that ends at once.
    let mut submit = slurm.submit("r", ENDLESS, Path::new("/bin/false"));
    assert_eq!(submit.end().await.code(), Some(1));
    assert!(submit.log().contains("error: 3 jobs in a row ended before their workers joined"), "{}", submit.log());
    fs::write(slurm.desk.join("refuse"), "").expect("a file");
    let mut submit = slurm.submit("r", ENDLESS, &worker_script());
    assert_eq!(submit.end().await.code(), Some(1));
    let sentence = "error: sbatch refuses (exit status: 1): Batch job submission failed: Invalid account";
    assert!(submit.log().contains(sentence), "{}", submit.log());
    // The option that tells jobs apart is reserved for the command.
    let mut submit = slurm.submit("r", ENDLESS, Path::new("--array=1-2"));
    assert_eq!(submit.end().await.code(), Some(2));
    assert!(submit.log().contains("--array=1-2 cannot be used with --autoscale"), "{}", submit.log());
}
