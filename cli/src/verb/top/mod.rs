//! `evoxo top`: shows a coordinator's runs and workers, live in a terminal.

mod view;

use std::{process::ExitCode, time::Duration};

use evoxo_process::EndRequests;
use evoxo_proto::v1;
use tokio::time::{sleep, timeout};

use crate::{
    remote::{Client, Coordinator, connect, converse, refused},
    say::usage,
    terminal::{Drawn, Key, keys},
};
use view::{Order, View};

/// The time between two looks at the coordinator.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The coordinator must answer within this time.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The coordinator.
#[derive(clap::Args)]
#[command(
    after_help = "Keys: arrow and page keys move the mark, Tab switches between runs and workers, s changes the sort \
order, p pauses the marked run, c continues it, d lets the marked worker leave; p, c and d ask first. q quits."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    coordinator: Coordinator,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    converse(async {
        // Errors about the address or the access are printed before anything is drawn.
        let mut view = View::new(arguments.coordinator.address.to_string());
        let seen = look(None, arguments, Duration::ZERO).await?;
        view.see(seen.runs, seen.workers);
        let mut client = Some(seen.client);
        let drawn = Drawn::begin().map_err(|why| {
            usage(format!("top needs a terminal ({why}): `evoxo runs` and `evoxo workers` print lists"))
        })?;
        let (mut keys, mut ends) = (keys()?, EndRequests::listen(false)?);
        // Keys do not wait for the next look.
        let mut next_look = Box::pin(look(client.clone(), arguments, LOOK_INTERVAL));
        loop {
            let (columns, lines) = Drawn::size();
            let (text, marked) = view.draw(columns, lines);
            drawn.draw(&text, marked)?;
            let order = tokio::select! {
                _ = ends.next() => break,
                seen = &mut next_look => {
                    client = match seen {
                        Ok(seen) => {
                            view.see(seen.runs, seen.workers);
                            Some(seen.client)
                        }
                        Err(why) => {
                            view.miss(format!("{why:#}"));
                            None
                        }
                    };
                    next_look = Box::pin(look(client.clone(), arguments, LOOK_INTERVAL));
                    None
                }
                key = keys.recv() => match key {
                    // The terminal is gone.
                    None | Some(Key::Interrupt) => break,
                    Some(key) => view.press(key, lines),
                },
            };
            match order {
                None => {}
                Some(Order::Quit) => break,
                Some(order) => {
                    let outcome = answered(carry_out(client.clone(), arguments, order)).await;
                    view.say(outcome.unwrap_or_else(|why| format!("{why:#}")));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The coordinator's runs and workers, and the client that asked for them.
struct Seen {
    client: Client,
    runs: Vec<v1::Run>,
    workers: v1::ListWorkersResponse,
}

/// Asks the coordinator after a pause.
async fn look(client: Option<Client>, arguments: &Arguments, pause: Duration) -> anyhow::Result<Seen> {
    sleep(pause).await;
    answered(async {
        let mut client = connected(client, arguments).await?;
        let runs = client.list(v1::ListRequest::default()).await.map_err(refused)?.into_inner().runs;
        let workers = client.list_workers(v1::ListWorkersRequest {}).await.map_err(refused)?.into_inner();
        Ok(Seen { client, runs, workers })
    })
    .await
}

/// The client, connected again if the connection was lost.
async fn connected(client: Option<Client>, arguments: &Arguments) -> anyhow::Result<Client> {
    match client {
        Some(client) => Ok(client),
        None => connect(&arguments.coordinator).await,
    }
}

/// The coordinator's answer, if it arrives in time.
async fn answered<T>(answer: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let late = |_| anyhow::anyhow!("the coordinator did not answer within {} s", ANSWER_TIMEOUT.as_secs());
    timeout(ANSWER_TIMEOUT, answer).await.map_err(late)?
}

/// Carries out an order; returns the outcome as a sentence.
async fn carry_out(client: Option<Client>, arguments: &Arguments, order: Order) -> anyhow::Result<String> {
    let mut client = connected(client, arguments).await?;
    match order {
        Order::Pause(name) => {
            client.pause(v1::PauseRequest { name: name.clone() }).await.map_err(refused)?;
            Ok(format!("{name} is paused"))
        }
        Order::Resume(name) => {
            client.resume(v1::ResumeRequest { name: name.clone() }).await.map_err(refused)?;
            Ok(format!("{name} continues"))
        }
        Order::Drain(session, name) => {
            let request = v1::DrainWorkersRequest { sessions: vec![session], ..v1::DrainWorkersRequest::default() };
            client.drain_workers(request).await.map_err(refused)?;
            Ok(format!("{name} is asked to leave"))
        }
        Order::Quit => Ok(String::new()),
    }
}
